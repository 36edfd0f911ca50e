// The routine of each op, and what routines share.
#include "ostro/cpu/routines/op_call.h"

namespace ostro::cpu {

using ir::OpKind;

int64_t integer_of(const Array& scalar) {
  switch (scalar.dtype()) {
    case ir::DType::i32:
      return *scalar.as<int32_t>();
    case ir::DType::u32:
      return *scalar.as<uint32_t>();
    default:
      return *scalar.as<int64_t>();
  }
}

OpRoutine op_routine(OpKind kind) {
  if (ir::is_elementwise(kind)) return run_elementwise;
  if (kind == OpKind::exchange_leaves) return run_exchange_leaves;
  if (ir::is_collective(kind)) return run_collective;
  switch (kind) {
    case OpKind::concat:
    case OpKind::stack:
      return run_concat;
    case OpKind::pad:
      return run_pad;
    case OpKind::dynamic_slice:
      return run_dynamic_slice;
    case OpKind::dynamic_update_slice:
      return run_dynamic_update_slice;
    case OpKind::iota:
      return run_iota;
    case OpKind::random:
      return run_random;
    case OpKind::fold_in:
      return run_fold_in;
    case OpKind::paged_write:
      return run_paged_write;
    case OpKind::paged_attention:
      return run_paged_attention;
    case OpKind::gather:
      return run_gather;
    case OpKind::scatter_add:
      return run_scatter_add;
    case OpKind::sort:
    case OpKind::top_k:
      return run_sort;
    case OpKind::sum:
    case OpKind::reduce_max:
    case OpKind::reduce_min:
    case OpKind::argmax:
    case OpKind::tree_sum:
      return run_reduction;
    case OpKind::dequantize:
      return run_dequantize;
    case OpKind::quantize:
      return run_quantize;
    case OpKind::dot_int8:
      return run_dot_int8;
    case OpKind::expert_dot:
      return run_expert_dot;
    case OpKind::expert_outer:
      return run_expert_outer;
    case OpKind::attention:
      return run_attention;
    case OpKind::attention_grad:
      return run_attention_grad;
    case OpKind::cross_entropy:
      return run_cross_entropy;
    case OpKind::cross_entropy_sum:
      return run_cross_entropy_sum;
    case OpKind::cross_entropy_grad:
      return run_cross_entropy_grad;
    case OpKind::box_sumsq:
      return run_box_sumsq;
    case OpKind::fingerprint:
      return run_fingerprint;
    default:
      return nullptr;
  }
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
