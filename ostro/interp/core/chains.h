// Chain, chain_of, sum_chain: how one leaf of a product of two matrices is summed (docs/spec/numerics.md): N6
// for f32, N7 for bf16, N23 for bf16 with the rule of tensor cores. Pure functions of checked ops.
#pragma once

#include "ostro/interp/core/call.h"
#include "ostro/ir/program/product_rule.h"
#include "ostro/numerics/dots.h"
#include "ostro/numerics/tc16.h"

namespace ostro::interp {

enum class Chain { kF32, kBf16, kTc16 };

// That of a dot, expert_dot or expert_outer, whose operands are of this dtype.
inline Chain chain_of(const ir::Op& op, ir::DType dtype) {
  if (ir::is_tc16(op.attrs)) return Chain::kTc16;
  return dtype == ir::DType::bf16 ? Chain::kBf16 : Chain::kF32;
}

// The sum of a(k) b(k) over k < n.
template <typename A, typename B>
float sum_chain(Chain chain, int64_t n, A&& a, B&& b) {
  switch (chain) {
    case Chain::kF32: return numerics::dot_f32(n, a, b);
    case Chain::kBf16: return numerics::dot_bf16(n, a, b);
    case Chain::kTc16: break;
  }
  return numerics::dot_tc16(n, a, b);
}

}  // namespace ostro::interp
