// cut, join: the leaves into which the Program's leaf table cuts a contraction over named axes (numerics.md
// N8), and the tree that joins their partial sums. Every op that sums uses this.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/ir/program/shape.h"
#include "ostro/numerics/leaves.h"
#include "ostro/numerics/tree.h"

namespace ostro::interp {

// The leaves of a contraction: each is an ascending list of flattened (row-major) contracted indices. When
// several axes are cut, they nest in table order, the last one innermost. Empty leaves stay in the list: they
// add +0.
struct ContractionLeaves {
  std::vector<int64_t> counts;                // leaves per cut axis, outermost first; {} when nothing is cut
  std::vector<std::vector<int64_t>> indices;  // product of counts lists; one list when nothing is cut
};
// The leaves of a contraction over these axes, in this order.
ContractionLeaves cut(const std::vector<ir::Axis>& contracted, const numerics::LeafTable& table);

// Joins one partial per leaf: the tree over the innermost axis' leaves first, then outwards.
template <typename T>
T join(std::vector<T> partials, const std::vector<int64_t>& counts) {
  for (size_t level = counts.size(); level-- > 0;) {
    std::vector<T> outer;
    for (size_t i = 0; i < partials.size(); i += static_cast<size_t>(counts[level]))
      outer.push_back(
          numerics::tree_sum(std::span<const T>(partials).subspan(i, static_cast<size_t>(counts[level]))));
    partials = std::move(outer);
  }
  return partials[0];
}

}  // namespace ostro::interp
