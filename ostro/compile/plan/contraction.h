// Contraction: index tables of contractions, and of values as contractions read them. Engines share them.
//
// Values and pure functions of checked steps; there are no errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/compile/plan/view.h"
#include "ostro/numerics/leaves.h"

namespace ostro::compile {

// The order in which a contraction adds its flattened (row-major) indices: leaf by leaf
// (docs/spec/numerics.md, N8), ascending inside a leaf. When several axes are cut, they nest in the order of
// the leaf table.
struct Contraction {
  std::vector<int64_t> order;         // every index once; empty when there is one leaf: 0, 1, 2, ...
  std::vector<int64_t> segment_ends;  // end of each leaf in `order`; one entry when there is one leaf
  std::vector<int64_t> tree_counts;   // leaves per cut axis, outermost first
  int64_t size = 0;
};
Contraction contraction_of(const std::vector<ir::Axis>& contracted, const numerics::LeafTable& leaves);

// Offsets in elements of every point of the row-major space over `axes` (by name) in a view; axes that the
// view lacks repeat it.
std::vector<int64_t> offsets_over(const std::vector<ir::Axis>& axes, const View& view);

// offsets[order[i]], or offsets as they are when there is one leaf.
std::vector<int64_t> in_order(std::vector<int64_t> offsets, const Contraction& contraction);

// Offsets, by flattened index of the axes `scaled`, of the scales of a stored matrix along its axis `groups`
// (dequantize): for every point of the row-major space over `axes`, of which `scaled` are some.
std::vector<int64_t> scale_offsets(const std::vector<ir::Axis>& axes, const std::vector<std::string>& scaled,
                                   const std::string& groups, const View& matrix, const View& scales);

}  // namespace ostro::compile
