// A dot as a matrix product: its axes sorted into batch, m, n and k, its operands as offset tables.
#include <algorithm>

#include "ostro/cpu/routines/contraction.h"
#include "ostro/ir/program/product_rule.h"

namespace ostro::cpu {

kernels::GemmSpec gemm_spec(const compile::Step& step, const numerics::LeafTable& leaves) {
  const compile::View &a = step.in[0], &b = step.in[1], &c = step.out[0];
  std::vector<ir::Axis> batch, m, n, k;
  const auto& over = step.attrs.strs("over");
  for (const std::string& name : over) k.push_back({name, a.shape.size_of(name)});
  for (const ir::Axis& axis : a.shape.axes) {
    if (std::find(over.begin(), over.end(), axis.name) != over.end()) continue;
    (b.shape.has(axis.name) ? batch : m).push_back(axis);
  }
  for (const ir::Axis& axis : b.shape.axes)
    if (!a.shape.has(axis.name)) n.push_back(axis);

  kernels::GemmSpec spec;
  spec.in = gemm_type(a.shape.dtype);
  spec.out = gemm_type(c.shape.dtype);
  spec.tc16 = ir::is_tc16(step.attrs);
  const Contraction contraction = contraction_of(k, leaves);
  spec.a_row = offsets_over(m, a);
  spec.a_col = in_order(offsets_over(k, a), contraction);
  spec.b_row = in_order(offsets_over(k, b), contraction);
  spec.b_col = offsets_over(n, b);
  if (b.shape.dtype == ir::DType::i8) {
    const auto& scaled = step.attrs.strs("scaled");
    const std::string& groups = step.attrs.str("groups");
    spec.int8_b = true;
    spec.s_row = in_order(scale_offsets(k, scaled, groups, b, step.in[2]), contraction);
    spec.s_col = scale_offsets(n, scaled, groups, b, step.in[2]);
  }
  spec.c_row = offsets_over(m, c);
  spec.c_col = offsets_over(n, c);
  spec.batch.clear();
  const auto in_a = offsets_over(batch, a), in_b = offsets_over(batch, b), in_c = offsets_over(batch, c);
  for (size_t i = 0; i < in_a.size(); ++i) spec.batch.push_back({in_a[i], in_b[i], in_c[i]});
  if (contraction.segment_ends.size() > 1) {
    spec.segment_ends = contraction.segment_ends;
    spec.tree_counts = contraction.tree_counts;
  }
  return spec;
}

}  // namespace ostro::cpu
