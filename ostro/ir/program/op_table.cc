// One row of words per op. The shape rules are in shape_rules.cc, sharding in sharding_rules.cc, cost in
// cost_rules.cc.

#include "ostro/ir/program/op_table.h"
#include "ostro/base/check.h"

namespace ostro::ir {
namespace {
using K = OpKind;
// clang-format off
constexpr OpInfo kTable[] = {
    {K::constant, "", "dtype, axes, sizes, value | data", "every element equals value; or raw little-endian bytes as hex in data"},
    {K::iota, "origin", "axis, size", "i32 [axis]: origin + index"},
    {K::random, "key, origins...", "kind, axes, sizes, global_sizes", "kind bits (u32), uniform, normal, trunc_normal (f32); element counter = global row-major index (N12); one i64 origin per axis"},
    {K::fold_in, "key, data", "", "u32[word:2]: threefry(key, (0, data))"},
    {K::neg, "x", "", "-x"},
    {K::abs, "x", "", "|x|"},
    {K::exp, "x", "", "N3"}, {K::log, "x", "", "N3"}, {K::log2, "x", "", "N3"}, {K::log1p, "x", "", "N3"},
    {K::tanh, "x", "", "N3"}, {K::sin, "x", "", "N3"}, {K::cos, "x", "", "N3"}, {K::erf, "x", "", "N3"}, {K::erfinv, "x", "", "N3"},
    {K::sqrt, "x", "", "one rounding"},
    {K::rsqrt, "x", "", "1 / sqrt(x), two roundings"},
    {K::sigmoid, "x", "", "1 / (1 + exp(-x)), each operator rounded"},
    {K::floor, "x", "", "largest integer not above x"},
    {K::logical_not, "x", "", "bool"},
    {K::is_finite, "x", "", "bool: neither infinite nor NaN"},
    {K::cast, "x", "dtype", "N1"},
    {K::use, "param", "dtype", "cast to compute dtype and gather to compute sharding; its cotangent stays f32"},
    {K::add, "a, b", "", ""}, {K::sub, "a, b", "", ""}, {K::mul, "a, b", "", ""}, {K::div, "a, b", "", "integers: truncating, x / 0 = 0"},
    {K::rem, "a, b", "", "integers: sign of the dividend, x % 0 = 0"},
    {K::min, "a, b", "", "NaN if either is"}, {K::max, "a, b", "", "NaN if either is"},
    {K::bit_and, "a, b", "", "integers and bool"}, {K::bit_or, "a, b", "", "integers and bool"}, {K::bit_xor, "a, b", "", "integers and bool"},
    {K::shl, "a, b", "", "count of 32 (64) and more gives 0"}, {K::shr, "a, b", "", "logical for u32, arithmetic for i32, i64"},
    {K::eq, "a, b", "", "bool"}, {K::ne, "a, b", "", "bool"}, {K::lt, "a, b", "", "bool"},
    {K::le, "a, b", "", "bool"}, {K::gt, "a, b", "", "bool"}, {K::ge, "a, b", "", "bool"},
    {K::select, "cond, a, b", "", "a where cond, else b"},
    {K::broadcast, "x", "axes, sizes", "to the given axes, which contain x's in any order; missing ones are repeated"},
    {K::transpose, "x", "axes", "to the given order"},
    {K::rename, "x", "from, to", "lists of equal length"},
    {K::split_axis, "x", "axis, axes, sizes", "axis -> several, row-major"},
    {K::merge_axes, "x", "axes, axis", "neighbouring axes in this order -> one, row-major"},
    {K::slice, "x", "axis, start, size, stride", "elements start, start+stride, ... (stride default 1)"},
    {K::pad, "x", "axis, low, high", "+0 (or 0, false) before and after"},
    {K::concat, "x...", "axis", "one after another along axis"},
    {K::split, "x", "axis, sizes", "several results, along axis"},
    {K::stack, "x...", "axis, position", "equal shapes along a new axis at position"},
    {K::unstack, "x", "axis", "one result per index, without the axis"},
    {K::reverse, "x", "axis", ""},
    {K::dynamic_slice, "x, start", "axis, size", "start: i32 scalar, clamped so that the slice lies inside"},
    {K::dynamic_update_slice, "x, update, start", "axis", "start: i32 scalar or with axes of x (one per example), clamped"},
    {K::paged_write, "pool, rows, place", "page, slot, row", "inference only; pool with row r at page place / 128, slot place % 128; a negative place drops the row; place i32 [row], no place twice"},
    {K::gather, "table, index, origin", "axis", "result axes: index's, then table's that are neither axis nor in index; index i32, shared axes pair up; an index outside gives +0"},
    {K::scatter_add, "update, index, origin", "axis, size, position, batch", "f32; transpose of gather: contributions in ascending flattened index order (N10); axis is put at position"},
    {K::sort, "x", "axis, descending", "values, i32 order; stable, ties to the lower index"},
    {K::top_k, "x", "axis, k", "values, i32 indices, descending, ties to the lower index; axis has size k in the results"},
    {K::sum, "x", "axes, order, acc", "order striped (N4, default) or serial (N5); acc f32 (default) or f64"},
    {K::reduce_max, "x", "axes", ""}, {K::reduce_min, "x", "axes", ""},
    {K::argmax, "x", "axis", "i32, ties to the lower index"},
    {K::tree_sum, "x", "axes", "the balanced tree of N8 over the flattened axes; f32 or f64"},
    {K::dequantize, "w, scales", "over, groups", "w i8 times its scales, in the scales' dtype (N1); scales has axis groups where w has the neighbouring axes of over; index k of K has group k div (K / groups)"},
    {K::dot, "a, b", "over, dtype, [rule]", "contracts over in that order (N6, N7, with rule tc16 N23), batches over shared names; result axes: a's, then b's that a has not"},
    {K::quantize, "x, [key, origins...]", "over, block, groups, rounding, [global_sizes]", "q i8, s f32 (N20): x's other axes, then over (q) or the blocks of it (s, along the axis groups); rounding nearest, or dithered with a key and one i64 origin per axis of x"},
    {K::dot_int8, "qa, sa, qb, sb", "over, block, groups, dtype", "product of two results of quantize (N20): a's axes, then b's, without over; f32, or bf16 by one rounding"},
    {K::expert_dot_int8, "qa, sa, qb, sb, expert, origin", "axis, over, block, groups, dtype", "each row of expert: product (N20) of a's row and the part of b at its index along axis; result axes: expert's, then b's that are neither axis nor in over; an expert outside gives +0"},
    {K::expert_outer_int8, "a, b, expert, origin, key, origins...", "axis, size, block, global_sizes", "f32; as expert_outer, a cut to nearest and b dithered over the rows of each expert, blocks from its first row on (N20); key and one i64 origin per axis of b"},
    {K::expert_dot, "x, w, expert, origin", "axis, over, dtype, [rule]", "each row of expert: dot of x's row and w[expert]; result axes: expert's, then w's that are neither axis nor in over; an expert outside gives +0 (N10)"},
    {K::expert_outer, "a, b, expert, origin", "axis, size, [rule]", "f32; for each expert the sum over its rows, ascending, of a's times b's elements: axis, then a's and b's axes that expert has not (N10)"},
    {K::attention, "q, k, v, q_origin, [mask operands...]", "see docs/spec/ops.md", "o, m, r (N9, N21)"},
    {K::attention_grad, "q, k, v, o, m, r, do, q_origin, [mask operands...]", "as attention", "dq, dk, dv (f32)[, dsink]"},
    {K::paged_attention, "q, key_pool, value_pool, table, position, [sink]", "row, page, slot, entry, head_dim, scale, [soft_cap, window, sink, int8_slices]", "inference only; N9 or N21 of each row over the keys 0 to position of its pages; table i32 [row, entry], position i32 [row], below 0: padding, which gives +0"},
    {K::cross_entropy, "logits, target, origin", "axis, z", "loss, m, r, lse (N11)"},
    {K::cross_entropy_sum, "logits, m", "axis", "l of N11 for a given m, at least every logit: f32 without axis"},
    {K::cross_entropy_grad, "logits, target, m, r, lse, w, origin", "axis, z, dtype", "dlogits (N11)"},
    {K::box_sumsq, "x", "axes, cells, [lengths]", "f64 per box (N13): result axes are x's axes that are cut or stacked, sized by their number of boxes"},
    {K::fingerprint, "x, origins...", "global_sizes", "i64[lane:2] (N14); one i64 origin per axis"},
    {K::scan, "consts..., carries..., xs...", "axis, length, consts, carries, reverse", "loop; xs and stacked results have axis first"},
    {K::cond, "pred, operands...", "", "two regions, then and else"},
    {K::custom, "operands...", "", "region 0: the function; 1: forward, with residuals after the results; 2: backward (residuals..., cotangents...) -> cotangents of operands"},
    {K::all_gather, "x", "axis, mesh_axis, bounds, size", "shards in worker order, along axis"},
    {K::shard_slice, "x", "axis, mesh_axis, start, size", "this worker's part of a value all hold"},
    {K::all_reduce_tree, "x", "mesh_axis, workers, leaves", "leaf partials joined by the tree of N8"},
    {K::reduce_scatter_tree, "x", "axis, mesh_axis, bounds, size, leaves", "the same, each worker keeping its shard of axis"},
    {K::all_reduce_max, "x", "mesh_axis, workers", ""},
    {K::all_reduce_int, "x", "mesh_axis, workers", "integer sum, wraps"},
    {K::all_reduce_bits, "x", "mesh_axis, workers", "bitwise or of the bits of any dtype: selects what one worker holds where the others have zero bits"},
    {K::exchange_leaves, "x", "mesh_axes, owners, part, [axis, bounds], firsts, counts", "every peer holds a leaf's x; result [part, x's axes]: of this worker's part of axis, one tree (N8) per subtree of leaves"},
};
// clang-format on
}  // namespace

const OpInfo& op_info(OpKind kind) {
  static_assert(sizeof(kTable) / sizeof(kTable[0]) == kOpCount, "every op has a row");
  const OpInfo& info = kTable[static_cast<size_t>(kind)];
  OSTRO_CHECK(info.kind == kind, "op table out of order at {}", op_name(kind));
  return info;
}

}  // namespace ostro::ir
