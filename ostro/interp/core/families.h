// run_dot, run_sum, ...: the op functions of the interpreter, by family and file. Each is an OpFunction of
// call.h, which executes one op and returns its results. The comments name the clauses of numerics.md that a
// file follows. The functions keep nothing, so threads may run different ops at the same time.
#pragma once

#include "ostro/interp/core/call.h"

namespace ostro::interp {

// sources.cc: values from attributes, indices and keys alone (numerics.md N12).
Result<Buffers> run_constant(const Call& call);
Result<Buffers> run_iota(const Call& call);
Result<Buffers> run_random(const Call& call);
Result<Buffers> run_fold_in(const Call& call);
// elementwise.cc (N1, N2, N3)
Result<Buffers> run_unary(const Call& call);
Result<Buffers> run_binary(const Call& call);
Result<Buffers> run_compare(const Call& call);
Result<Buffers> run_logical_not(const Call& call);
Result<Buffers> run_is_finite(const Call& call);
Result<Buffers> run_select(const Call& call);
// cast.cc (N1): cast and use
Result<Buffers> run_cast(const Call& call);
// layout.cc: moves elements without arithmetic
Result<Buffers> run_reorder(const Call& call);  // broadcast, transpose
Result<Buffers> run_reshape(const Call& call);  // rename, split_axis, merge_axes
Result<Buffers> run_slice(const Call& call);
Result<Buffers> run_pad(const Call& call);
Result<Buffers> run_concat(const Call& call);
Result<Buffers> run_split(const Call& call);
Result<Buffers> run_stack(const Call& call);
Result<Buffers> run_unstack(const Call& call);
Result<Buffers> run_reverse(const Call& call);
Result<Buffers> run_dynamic_slice(const Call& call);
Result<Buffers> run_dynamic_update_slice(const Call& call);
// indexed.cc (N10)
Result<Buffers> run_gather(const Call& call);
Result<Buffers> run_scatter_add(const Call& call);
Result<Buffers> run_sort(const Call& call);  // sort, top_k
// reduce.cc (N4, N5, N8)
Result<Buffers> run_sum(const Call& call);
Result<Buffers> run_extremum(const Call& call);  // reduce_max, reduce_min
Result<Buffers> run_argmax(const Call& call);
Result<Buffers> run_tree_sum(const Call& call);
// dot.cc (N6, N7)
Result<Buffers> run_dot(const Call& call);
// dequantize.cc (N1)
Result<Buffers> run_dequantize(const Call& call);
// integer_products.cc (N20)
Result<Buffers> run_quantize(const Call& call);
Result<Buffers> run_dot_int8(const Call& call);
// expert_integers.cc (N20)
Result<Buffers> run_expert_dot_int8(const Call& call);
Result<Buffers> run_expert_outer_int8(const Call& call);
// expert.cc (N10)
Result<Buffers> run_expert_dot(const Call& call);
Result<Buffers> run_expert_outer(const Call& call);
// attention.cc, attention_grad.cc (N9)
Result<Buffers> run_attention(const Call& call);
Result<Buffers> run_attention_grad(const Call& call);
// paged.cc (N9)
Result<Buffers> run_paged_write(const Call& call);
Result<Buffers> run_paged_attention(const Call& call);
// cross_entropy.cc (N11)
Result<Buffers> run_cross_entropy(const Call& call);
Result<Buffers> run_cross_entropy_sum(const Call& call);
Result<Buffers> run_cross_entropy_grad(const Call& call);
// state.cc (N13, N14)
Result<Buffers> run_box_sumsq(const Call& call);
Result<Buffers> run_fingerprint(const Call& call);
// control.cc
Result<Buffers> run_scan(const Call& call);
Result<Buffers> run_cond(const Call& call);
Result<Buffers> run_custom(const Call& call);
// collective.cc (N8)
Result<Buffers> run_all_gather(const Call& call);
Result<Buffers> run_shard_slice(const Call& call);
Result<Buffers> run_all_reduce(const Call& call);  // all_reduce_tree, _max, _int, _bits
Result<Buffers> run_reduce_scatter_tree(const Call& call);
Result<Buffers> run_exchange_leaves(const Call& call);

}  // namespace ostro::interp
