// StepRunner: does training steps. The leaf program runs on every leaf (microbatch), the results are summed
// in one fixed tree, and the update program makes the new state (numerics.md, N8).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/programs/state_arrays.h"

namespace ostro::train {

// Parameters and optimizer state after `step` steps, in the order of the canonical programs.
struct State {
  int64_t step = 0;
  std::vector<runtime::Buffer> params;
  std::vector<runtime::Buffer> optimizer;
};

// All rows of one step, as [batch, pos] arrays in the order of the leaf program's batch inputs.
using BatchArrays = std::vector<runtime::Buffer>;

struct LeafResult {
  double loss_sum = 0, weight = 0;
  std::vector<std::array<int64_t, 2>> gradient_prints;  // with chain.leaf_gradients
  std::vector<double> measures = {};                    // sums (measure_names)
};

struct StepResult {
  Measured measured;             // what the update program measures (programs/update_io.h)
  double weight = 0;             // sum of the loss weights (tokens that count)
  std::vector<double> measures;  // sums over the batch (measure_names)
  std::vector<LeafResult> leaves;
  std::vector<std::array<int64_t, 2>> prints;  // fingerprint of each parameter after the step
  std::vector<double> watched;  // norms after the step, behind those in `measured` (watch_names)
  std::vector<runtime::Buffer> expert_loads;  // on the host, whole, after the step (programs/state_arrays.h)
  // With trainer.cross_check: the leaves that were computed twice, and the time that this took here.
  int64_t checked_leaves = 0;
  double check_seconds = 0;

  bool ok() const { return measured.ok != 0; }  // if not, the state is unchanged
  float loss() const { return static_cast<float>(measured.loss); }
  double gradient_norm() const { return measured.gradient_norm; }
};

// The norms that trainer.watch_norms asks for, by name (programs/watch.h).
std::vector<std::pair<std::string, double>> watched_norms(const CanonicalPrograms& programs,
                                                          const StepResult& result);

// The two lanes of a fingerprint. The programs return it as i64 [lane].
Result<std::array<int64_t, 2>> fingerprint_lanes(const runtime::Buffer& print);
// Puts the update program's report of the new parameters, and their experts' loads, into the result.
Status put_report(StepResult& result, const UpdateReport<runtime::Buffer>& report,
                  std::vector<runtime::Buffer> expert_loads);

// One kind of message that a worker sends to others in a step.
struct Sent {
  std::string what;  // a collective of a program, or an exchange between them
  int64_t times = 0, bytes = 0;
  int64_t between = 0;  // those of the bytes that go to workers of other slices (docs/spec/spmd.md)
  bool operator==(const Sent&) const = default;
};

// The memory of one worker, and what it sends to other workers in a step. In bytes.
struct WorkerLoad {
  int64_t leaves = 0;    // the number of leaves that it runs
  int64_t owned = 0;     // its cells of the parameters and of the optimizer's arrays, which it updates
  int64_t copies = 0;    // its copies of another worker's cells
  int64_t renewed = 0;   // new cells beside the old ones, in a joint update
  int64_t gathered = 0;  // parameters that it holds during all leaves, beside the owned ones
  // Most gradients at a time outside of the programs: partial sums, and what is sent and received.
  int64_t gradients = 0;
  int64_t partials = 0;  // most partial sums at a time
  // Inside the leaf program, so a part of its arena: most parameters and most gradients that it holds whole,
  // for one layer or one table.
  int64_t layer_parameters = 0, layer_gradients = 0;
  std::vector<Sent> sent;

  int64_t total_sent() const;
  int64_t total_between() const;
  int64_t held() const { return owned + copies + renewed + gathered + gradients; }
  bool operator==(const WorkerLoad&) const = default;
};

// Runs training steps. Implementations spread the work in different ways, and all of them give the same bits.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  // Advances the state by one step. `scalars` are the optimizer's (optim::step_scalars). After an error the
  // state must not be used. The arrays may stay where they were computed; collect() brings them.
  virtual Result<StepResult> run(State& state, const BatchArrays& batch,
                                 const std::vector<float>& scalars) = 0;
  // Makes the state that run() returned whole, so that it can be saved. kParameters: brings the parameters
  // only.
  enum class Collect { kParameters, kAll };
  virtual Status collect(State&, Collect) { return Status(); }
  // The program of a leaf as the first worker of this process runs it; null when there is none.
  virtual const ir::Program* leaf_program() const { return nullptr; }
  // Memory and FLOPs of the leaf and update programs, for reports.
  virtual runtime::ExecutableInfo leaf_info() const = 0;
  virtual runtime::ExecutableInfo update_info() const = 0;
  // The loads, in steps of `leaves` leaves, of the workers whose programs this process has: all workers that
  // are threads of it, or its own worker.
  virtual std::vector<WorkerLoad> loads(int64_t leaves) const = 0;
  // Bytes sent between workers so far.
  virtual int64_t bytes_sent() const { return 0; }
  // Those of them that went to workers of other slices.
  virtual int64_t bytes_between_slices() const { return 0; }
};

// A runner that runs all leaves one after another in this process. `groups`: numerics.slice_partials.
Result<std::unique_ptr<StepRunner>> make_step_runner(const CanonicalPrograms& programs,
                                                     runtime::Engine& engine, const std::string& remat,
                                                     int64_t groups = 0);

// The state at step 0: parameters from the init program, the optimizer's arrays zero.
Result<State> initial_state(const CanonicalPrograms& programs, runtime::Engine& engine, int64_t seed);

// Rows [first, first + count) of every array, without a copy.
BatchArrays rows_of(const BatchArrays& batch, int64_t first, int64_t count);

// One program that adds two lists of f32 arrays of these shapes. It sums the gradients of two neighbouring
// subtrees of leaves: the tree's addition (numerics.md, N8).
ir::Program add_program(const std::vector<ir::Shape>& shapes);

// One program that rounds f32 arrays of these shapes to bf16; its results are f32 (numerics.slice_partials).
ir::Program round_program(const std::vector<ir::Shape>& shapes);

// Compile options of a step's programs. Training, planning and memory estimates all use these.

// For the leaf program. Parameters are not donated: the next leaf reads them again.
runtime::CompileOptions leaf_options(const std::string& remat);
// For the update program. Parameters, the optimizer's arrays and gradients, its first `arrays` inputs, are
// donated: nothing reads them after the update.
runtime::CompileOptions update_options(size_t arrays);
runtime::CompileOptions update_options(const CanonicalPrograms& programs);
// For add_program and round_program over n arrays. Each result overwrites the first of its inputs.
runtime::CompileOptions add_options(size_t n);

// The sums of the leaves' losses and weights, and those of their measures, each as an f64 tree.
std::pair<double, double> join_losses(const std::vector<LeafResult>& leaves);
std::vector<double> join_measures(const std::vector<LeafResult>& leaves);

// Reads the numbers among the results of a leaf program; not its gradients, which may have been moved away.
// Call it when all leaves of a step have been started, because it waits for the program's engine. Errors:
// those of the memory.
Result<LeafResult> leaf_result(const LeafResults<runtime::Buffer>& results);

// Number of rows in one leaf.
int64_t leaf_rows(const CanonicalPrograms& programs);

}  // namespace ostro::train
