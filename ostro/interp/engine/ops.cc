// The table from op to function.
#include "ostro/interp/core/families.h"
#include "ostro/ir/program/op_rows.h"

namespace ostro::interp {

OpFunction op_function(OpKind kind) {
  using enum OpKind;
  static constexpr ir::OpRow<OpFunction> kRows[] = {
      {run_constant, {constant}},
      {run_iota, {iota}},
      {run_random, {random}},
      {run_fold_in, {fold_in}},
      {run_unary,
       {neg, abs, exp, log, log2, log1p, tanh, sin, cos, erf, erfinv, sqrt, rsqrt, sigmoid, floor}},
      {run_logical_not, {logical_not}},
      {run_is_finite, {is_finite}},
      {run_cast, {cast, use}},
      {run_binary, {add, sub, mul, div, rem, min, max, bit_and, bit_or, bit_xor, shl, shr}},
      {run_compare, {eq, ne, lt, le, gt, ge}},
      {run_select, {select}},
      {run_reorder, {broadcast, transpose}},
      {run_reshape, {rename, split_axis, merge_axes}},
      {run_slice, {slice}},
      {run_pad, {pad}},
      {run_concat, {concat}},
      {run_split, {split}},
      {run_stack, {stack}},
      {run_unstack, {unstack}},
      {run_reverse, {reverse}},
      {run_dynamic_slice, {dynamic_slice}},
      {run_dynamic_update_slice, {dynamic_update_slice}},
      {run_paged_write, {paged_write}},
      {run_gather, {gather}},
      {run_scatter_add, {scatter_add}},
      {run_sort, {sort, top_k}},
      {run_sum, {sum}},
      {run_extremum, {reduce_max, reduce_min}},
      {run_argmax, {argmax}},
      {run_tree_sum, {tree_sum}},
      {run_dequantize, {dequantize}},
      {run_dot, {dot}},
      {run_quantize, {quantize}},
      {run_dot_int8, {dot_int8}},
      {run_expert_dot_int8, {expert_dot_int8}},
      {run_expert_outer_int8, {expert_outer_int8}},
      {run_expert_dot, {expert_dot}},
      {run_expert_outer, {expert_outer}},
      {run_attention, {attention}},
      {run_attention_grad, {attention_grad}},
      {run_paged_attention, {paged_attention}},
      {run_cross_entropy, {cross_entropy}},
      {run_cross_entropy_sum, {cross_entropy_sum}},
      {run_cross_entropy_grad, {cross_entropy_grad}},
      {run_box_sumsq, {box_sumsq}},
      {run_fingerprint, {fingerprint}},
      {run_scan, {scan}},
      {run_cond, {cond}},
      {run_custom, {custom}},
      {run_all_gather, {all_gather}},
      {run_shard_slice, {shard_slice}},
      {run_all_reduce, {all_reduce_tree, all_reduce_max, all_reduce_int, all_reduce_bits}},
      {run_reduce_scatter_tree, {reduce_scatter_tree}},
      {run_exchange_leaves, {exchange_leaves}},
  };
  static_assert(ir::names_every_op(kRows));
  return ir::function_of(kRows, kind);
}

}  // namespace ostro::interp
