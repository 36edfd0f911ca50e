// One training step: the leaf program on every leaf, one fixed tree over their results, the update
// (numerics.md, N8).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/programs/programs.h"

namespace ostro::train {

// Parameters and optimizer state after `step` steps, in the order of the canonical programs.
struct State {
  int64_t step = 0;
  std::vector<runtime::Buffer> params, first_moment, second_moment;
};

// The rows of one step, whole: [batch, pos] arrays in the order of the leaf program's batch parameters.
using BatchArrays = std::vector<runtime::Buffer>;

struct LeafResult {
  double loss_sum = 0, weight = 0;
  std::vector<std::array<int64_t, 2>> gradient_prints;  // with chain.leaf_gradients
};

struct StepResult {
  bool ok = false;  // loss and gradient norm are finite; when not, the state is as before
  float loss = 0;
  double gradient_norm = 0;
  double weight = 0;  // sum of loss weights: the tokens that count
  std::vector<LeafResult> leaves;
  std::vector<std::array<int64_t, 2>> prints;  // per parameter, after the step
};

// The two lanes of a fingerprint as the programs give it: i64 {2}.
std::array<int64_t, 2> fingerprint_lanes(const runtime::Buffer& print);

// What one worker holds, and sends to the others in a step.
struct WorkerLoad {
  int64_t leaves = 0;           // it runs
  int64_t partials = 0;         // sums of gradients alive at once, at most, each as large as the parameters
  int64_t parameter_bytes = 0;  // whole parameters
  int64_t owned_bytes = 0;      // what it updates: its cells of the parameters and both moments
  int64_t sent_bytes = 0;       // results of leaves, gradients, sums of the update, new parameters
  bool operator==(const WorkerLoad&) const = default;
};

// Runs steps; the way the work is spread (this interface's implementations) cannot reach the bits.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  // Advances the state by one step. `scalars` are lr, k1, k2. An error leaves the state unusable.
  virtual Result<StepResult> run(State& state, const BatchArrays& batch,
                                 const optim::AdamScalars& scalars) = 0;
  // Bytes and FLOPs of the leaf and update programs, for reports.
  virtual runtime::ExecutableInfo leaf_info() const = 0;
  virtual runtime::ExecutableInfo update_info() const = 0;
  // By worker, for steps of so many leaves.
  virtual std::vector<WorkerLoad> loads(int64_t leaves) const = 0;
  // Bytes sent between workers so far.
  virtual int64_t bytes_sent() const { return 0; }
};

// All leaves one after another in this process.
Result<std::unique_ptr<StepRunner>> make_step_runner(const CanonicalPrograms& programs,
                                                     runtime::Engine& engine, const std::string& remat);

// The initial state: parameters from the init program, moments zero.
Result<State> initial_state(const CanonicalPrograms& programs, runtime::Engine& engine, int64_t seed);

// Rows [first, first + count) of every array.
BatchArrays rows_of(const BatchArrays& batch, int64_t first, int64_t count);

// Joins the gradients of two neighbouring subtrees of leaves, in f32: the tree's addition (numerics.md, N8).
// One program that adds two lists of arrays of these shapes.
ir::Program add_program(const std::vector<ir::Shape>& shapes);

// f64 tree over the leaves' loss sums and weights.
std::pair<double, double> join_losses(const std::vector<LeafResult>& leaves);

// Number of parameters of the model, and the number of batch arrays, of a leaf program.
size_t parameter_count(const CanonicalPrograms& programs);
// Rows of one leaf.
int64_t leaf_rows(const CanonicalPrograms& programs);

}  // namespace ostro::train
