// AdamW on trees of arrays, with clipping by global norm (numerics.md N13).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ostro/optim/options.h"
#include "ostro/trace/ops.h"

namespace ostro::optim {

// How parameters are cut into boxes for the sum of squares. `cells`: axis -> number of cells (numerics.cells,
// then numerics.leaves). An axis in `stacked` is cut into single indices.
struct Boxes {
  std::vector<std::pair<std::string, int64_t>> cells;
  std::vector<std::string> stacked;

  // Number of boxes along an axis: its number of cells (at most its size) when it is cut, its size when it is
  // stacked, else 1.
  int64_t count(const Axis& axis) const;
};

// Sum of squares of one array as an f64 scalar: f64 per box, then the tree over boxes in lexicographic order.
Array sum_of_squares(const Array& g, const Boxes& boxes);

// norm = sqrt(tree of sum_of_squares over the list) * inv. clip: the factor that brings the norm down to
// max_norm; exactly 1 when the norm is not larger, or when there is no limit. inv: f32 scalar, 1 / total
// weight.
struct GlobalNorm {
  Array norm;  // f64
  Array clip;  // f32
};
GlobalNorm global_norm(const std::vector<Array>& gradients, const Array& inv, std::optional<double> max_norm,
                       const Boxes& boxes);

// The scalars that change from step to step. The host computes them in f64; the program gets them as f32.
struct AdamScalars {
  float lr, k1, k2;  // k = 1 / (1 - beta^t), t = 1 at the first step
};
AdamScalars adam_scalars(const AdamOptions& options, int64_t step, int64_t num_train_steps);

// One parameter's update. `gradient` is the raw sum; inv, clip, lr, k1, k2 are f32 scalars.
struct AdamResult {
  Array p, m, v;
};
AdamResult adamw(const AdamOptions& options, bool decayed, const Array& p, const Array& m, const Array& v,
                 const Array& gradient, const Array& inv, const Array& clip, const Array& lr, const Array& k1,
                 const Array& k2);

// Does weight decay apply to the parameter at `path`? weight_decay_modules is null: to all but norms,
// embeddings and biases. It is a list of globs: to paths that match one of them (* matches any text).
bool decays(const AdamOptions& options, const std::string& path);

}  // namespace ostro::optim
