// join_leaves, gemm_spec, gemm_type: contractions as the kernels of this room take them. Pure functions of
// checked steps; there are no errors.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/compile/plan/contraction.h"
#include "ostro/compile/plan/plan.h"
#include "ostro/products/gemm.h"

namespace ostro::cpu {

using compile::Contraction, compile::contraction_of, compile::in_order, compile::offsets_over,
    compile::scale_offsets;

// As kernels name the dtype of an operand or a result.
inline kernels::GemmType gemm_type(ir::DType d) {
  return d == ir::DType::bf16 ? kernels::GemmType::kBf16 : kernels::GemmType::kF32;
}

// The matrix product of a dot step (dot.cc).
kernels::GemmSpec gemm_spec(const compile::Step& step, const numerics::LeafTable& leaves);

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
