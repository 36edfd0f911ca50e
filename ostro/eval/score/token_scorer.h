// TokenScorer: log-probabilities of tokens given those before them, many sequences at a time. Rows are
// independent of each other (numerics.md, N16), so results do not depend on the size of a batch or on
// padding; they have the bits of the training loss.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ostro/models/model_functions.h"
#include "ostro/numerics/leaves.h"
#include "ostro/runtime/engine.h"

namespace ostro::eval {

// A stretch of tokens, of which tokens[first], tokens[first + 1], ... are scored. first >= 1.
struct Window {
  std::vector<int32_t> tokens;
  size_t first = 1;
};

struct WindowScore {
  double log_prob = 0;  // natural logarithm; the f32 values of the tokens, added in f64 in their order
  // True if each scored token is the most likely one (of equal ones, the one with the lowest id). Nothing
  // unless it was asked for.
  std::optional<bool> greedy;
};

struct ScorerOptions {
  int64_t context = 0;              // positions of the model; a window has at most one token more
  int64_t batch_tokens = 4096;      // positions that are computed together, about
  numerics::LeafTable leaves = {};  // of the model's programs; see train::inference_leaf_table
};

// Compiles a program for each size of batch when it is first needed, and keeps it. Not thread-safe; the
// engine must outlive it.
class TokenScorer {
 public:
  // `model` are functions for evaluation (ModelOptions::evaluation_functions).
  TokenScorer(models::ModelFunctions model, std::vector<runtime::Buffer> params, runtime::Engine& engine,
              ScorerOptions options);

  int64_t context() const { return options_.context; }
  // True if `greedy` can be asked for: the model can generate.
  bool knows_greedy() const { return static_cast<bool>(model_.decode.step); }

  // Called with the number of windows that are done.
  using Progress = std::function<void(size_t)>;

  // The scores, in the order of the windows. Errors: a window that is too long, or scores nothing; a
  // log-probability that is not a number.
  Result<std::vector<WindowScore>> score(std::span<const Window> windows, bool greedy,
                                         const Progress& progress = {});

  // Windows that one program scores together.
  struct Batch {
    std::vector<size_t> windows;  // which
    int64_t rows = 0, length = 0;
  };
  // The batches in which score() computes the windows, in their order. The windows must be valid.
  std::vector<Batch> batches(std::span<const Window> windows, bool greedy) const;
  // The program of a batch, not compiled. Errors: those of tracing.
  Result<ir::Program> traced_program(int64_t rows, int64_t length, bool greedy) const;

 private:
  // The program for `rows` windows padded to `length` positions.
  Result<runtime::Executable*> program(int64_t rows, int64_t length, bool greedy);
  Status run_batch(std::span<const Window> windows, const Batch& batch, bool greedy,
                   std::vector<WindowScore>& out);
  int64_t rows_of(int64_t waiting, int64_t length, bool greedy) const;

  struct Compiled {
    int64_t rows, length;
    bool greedy;
    std::unique_ptr<runtime::Executable> executable;
  };
  models::ModelFunctions model_;
  std::vector<runtime::Buffer> params_;
  runtime::Engine& engine_;
  ScorerOptions options_;
  std::vector<Compiled> programs_;
};

}  // namespace ostro::eval
