// global_norm, Boxes: the norm of gradients, and clipping by it (numerics.md N13). The functions trace ops.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/trace/ops.h"

namespace ostro::optim {

// The division of parameters into boxes for the sum of squares. `cells`: axis -> number of cells
// (numerics.cells, then numerics.leaves). An axis in `stacked` is cut into single indices.
struct Boxes {
  std::vector<std::pair<std::string, int64_t>> cells;
  std::vector<std::string> stacked;

  // Number of boxes along an axis: its number of cells (at most its size) when it is cut, its size when it is
  // stacked, else 1.
  int64_t count(const Axis& axis) const;
};

// Returns the sum of squares of one array as an f64 scalar: it is summed in f64 within each box, then by the
// tree over the boxes in lexicographic order.
Array sum_of_squares(const Array& g, const Boxes& boxes);

// Sums of squares over all axes but those in `but`: an f64 array with these axes, in the order of g.
Array sums_of_squares(const Array& g, const Axes& but, const Boxes& boxes);

// norm = sqrt(tree of sum_of_squares over the list) * inv. clip: the factor that brings the norm down to
// max_norm; exactly 1 when the norm is not larger, or when there is no limit. inv: f32 scalar, 1 / total
// weight.
struct GlobalNorm {
  Array norm;  // f64
  Array clip;  // f32
};
// The norm and clip factor of a list of raw gradients, at least one.
GlobalNorm global_norm(const std::vector<Array>& gradients, const Array& inv, std::optional<double> max_norm,
                       const Boxes& boxes);

}  // namespace ostro::optim
