// The routine of each op, and what routines share.
#include "ostro/cpu/routines/op_call.h"
#include "ostro/ir/program/op_rows.h"

namespace ostro::cpu {

using ir::OpKind;

int64_t integer_of(const Array& scalar) {
  switch (scalar.dtype()) {
    case ir::DType::i32: return *scalar.as<int32_t>();
    case ir::DType::u32: return *scalar.as<uint32_t>();
    default: return *scalar.as<int64_t>();
  }
}

OpRoutine op_routine(OpKind kind) {
  if (ir::is_elementwise(kind)) return run_elementwise;
  if (kind == OpKind::exchange_leaves) return run_exchange_leaves;
  if (ir::is_collective(kind)) return run_collective;
  using enum OpKind;
  static constexpr ir::OpRow<OpRoutine> kRows[] = {
      {run_concat, {concat, stack}},
      {run_pad, {pad}},
      {run_dynamic_slice, {dynamic_slice}},
      {run_dynamic_update_slice, {dynamic_update_slice}},
      {run_iota, {iota}},
      {run_random, {random}},
      {run_fold_in, {fold_in}},
      {run_paged_write, {paged_write}},
      {run_paged_attention, {paged_attention}},
      {run_gather, {gather}},
      {run_scatter_add, {scatter_add}},
      {run_sort, {sort, top_k}},
      {run_reduction, {sum, reduce_max, reduce_min, argmax, tree_sum}},
      {run_dequantize, {dequantize}},
      {run_quantize, {quantize}},
      {run_dot_int8, {dot_int8}},
      {run_expert_dot_int8, {expert_dot_int8}},
      {run_expert_outer_int8, {expert_outer_int8}},
      {run_expert_dot, {expert_dot}},
      {run_expert_outer, {expert_outer}},
      {run_attention, {attention}},
      {run_attention_grad, {attention_grad}},
      {run_cross_entropy, {cross_entropy}},
      {run_cross_entropy_sum, {cross_entropy_sum}},
      {run_cross_entropy_grad, {cross_entropy_grad}},
      {run_box_sumsq, {box_sumsq}},
      {run_fingerprint, {fingerprint}},
  };
  return ir::function_of(kRows, kind);
}

compile::Target cpu_target() {
  compile::Target target;
  target.reads_views = [](OpKind k) {
    return ir::is_elementwise(k) || k == OpKind::dot || k == OpKind::expert_dot ||
           k == OpKind::expert_outer || k == OpKind::attention || k == OpKind::attention_grad ||
           k == OpKind::paged_attention || k == OpKind::concat || k == OpKind::stack || k == OpKind::quantize;
  };
  return target;
}

}  // namespace ostro::cpu
