// Contraction: index tables of contractions, and of values as contractions read them. Values and pure
// functions of checked steps; there are no errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/compile/plan/plan.h"
#include "ostro/cpu/products/gemm.h"
#include "ostro/numerics/leaves.h"

namespace ostro::cpu {

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
std::vector<int64_t> offsets_over(const std::vector<ir::Axis>& axes, const compile::View& view);

// offsets[order[i]], or offsets as they are when there is one leaf.
std::vector<int64_t> in_order(std::vector<int64_t> offsets, const Contraction& contraction);

// Offsets, by flattened index of the axes `scaled`, of the scales of a stored matrix along its axis `groups`
// (dequantize): for every point of the row-major space over `axes`, of which `scaled` are some.
std::vector<int64_t> scale_offsets(const std::vector<ir::Axis>& axes, const std::vector<std::string>& scaled,
                                   const std::string& groups, const compile::View& matrix,
                                   const compile::View& scales);

// The matrix product of a dot step (dot.cc).
GemmSpec gemm_spec(const compile::Step& step, const numerics::LeafTable& leaves);

// The tree of N8 over nested leaves, in place; returns the root. No partials: +0.
template <typename T>
T join_leaves(std::vector<T>& partials, const std::vector<int64_t>& counts) {
  int64_t n = static_cast<int64_t>(partials.size());
  for (size_t level = counts.size(); level-- > 0;) {
    const int64_t c = counts[level];
    for (int64_t group = 0; group < n / c; ++group) {
      T* p = &partials[static_cast<size_t>(group * c)];
      // Neighbours at distance 1, 2, 4, ...: the balanced tree whose left parts are powers of two.
      for (int64_t step = 1; step < c; step *= 2)
        for (int64_t i = 0; i + step < c; i += 2 * step) p[i] = p[i] + p[i + step];
      partials[static_cast<size_t>(group)] = p[0];
    }
    n /= c;
  }
  return partials.empty() ? T{0} : partials[0];
}

}  // namespace ostro::cpu
