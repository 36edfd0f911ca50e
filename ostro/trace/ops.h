// dot, sum, concat, ...: named ops on Arrays, as free functions.
//
// Operands are broadcast by axis name: the result has the axes of all operands. docs/spec/numerics.md defines
// the result of each op to the bit. Errors throw TraceError naming the op, the axes with both sizes and the
// call site.
#pragma once

#include <array>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/trace/array.h"

namespace ostro {

using Axes = std::vector<std::string>;
using Loc = std::source_location;

// --- Sources

// An array of one value.
Array full(double value, DType dtype, const std::vector<Axis>& axes, Loc loc = Loc::current());
inline Array zeros(const std::vector<Axis>& axes, DType dtype = DType::f32, Loc loc = Loc::current()) {
  return full(0, dtype, axes, loc);
}
inline Array ones(const std::vector<Axis>& axes, DType dtype = DType::f32, Loc loc = Loc::current()) {
  return full(1, dtype, axes, loc);
}
// i32 0, 1, ... along a new axis.
Array iota(const Axis& axis, Loc loc = Loc::current());
// Random numbers (numerics.md N12) from a key u32[word:2]. Each element depends only on the key and its
// global index.
Array random_uniform(const Array& key, const std::vector<Axis>& axes, Loc loc = Loc::current());
Array random_normal(const Array& key, const std::vector<Axis>& axes, Loc loc = Loc::current());
// Standard normal cut at three standard deviations.
Array random_trunc_normal(const Array& key, const std::vector<Axis>& axes, Loc loc = Loc::current());
// u32 of random bits.
Array random_bits(const Array& key, const std::vector<Axis>& axes, Loc loc = Loc::current());
// A new key for one purpose, from a key and a name (as 32-bit FNV-1a) or a number.
Array fold_in(const Array& key, std::string_view name, Loc loc = Loc::current());
Array fold_in(const Array& key, const Array& number, Loc loc = Loc::current());
// The key of a seed (concrete).
Array make_key(uint64_t seed);

// --- Elementwise. Comparisons give bool.

Array operator+(Operand a, Operand b);
Array operator-(Operand a, Operand b);
Array operator*(Operand a, Operand b);
Array operator/(Operand a, Operand b);
Array operator%(Operand a, Operand b);
Array operator-(Operand a);
Array operator==(Operand a, Operand b);
Array operator!=(Operand a, Operand b);
Array operator<(Operand a, Operand b);
Array operator<=(Operand a, Operand b);
Array operator>(Operand a, Operand b);
Array operator>=(Operand a, Operand b);
Array operator&(Operand a, Operand b);
Array operator|(Operand a, Operand b);
Array operator^(Operand a, Operand b);
Array logical_not(const Array& a, Loc loc = Loc::current());
Array minimum(Operand a, Operand b);
Array maximum(Operand a, Operand b);
Array shift_left(Operand a, Operand b);
Array shift_right(Operand a, Operand b);
Array abs(const Array& x, Loc loc = Loc::current());
Array exp(const Array& x, Loc loc = Loc::current());
Array log(const Array& x, Loc loc = Loc::current());
Array log2(const Array& x, Loc loc = Loc::current());
Array log1p(const Array& x, Loc loc = Loc::current());
Array tanh(const Array& x, Loc loc = Loc::current());
Array sin(const Array& x, Loc loc = Loc::current());
Array cos(const Array& x, Loc loc = Loc::current());
Array erf(const Array& x, Loc loc = Loc::current());
Array erfinv(const Array& x, Loc loc = Loc::current());
Array sqrt(const Array& x, Loc loc = Loc::current());
Array rsqrt(const Array& x, Loc loc = Loc::current());
Array sigmoid(const Array& x, Loc loc = Loc::current());
Array floor(const Array& x, Loc loc = Loc::current());
Array square(const Array& x, Loc loc = Loc::current());
Array silu(const Array& x, Loc loc = Loc::current());       // x * sigmoid(x)
Array gelu_tanh(const Array& x, Loc loc = Loc::current());  // numerics.md N3
Array gelu_erf(const Array& x, Loc loc = Loc::current());   // numerics.md N3
Array relu(const Array& x, Loc loc = Loc::current());
Array softplus(const Array& x, Loc loc = Loc::current());  // log1p(exp(-|x|)) + max(x, 0)
Array is_finite(const Array& x, Loc loc = Loc::current());
Array select(const Array& cond, Operand a, Operand b);
Array cast(const Array& x, DType dtype, Loc loc = Loc::current());
// Identity with zero derivative.
Array stop_gradient(const Array& x, Loc loc = Loc::current());
// Gives the value a name that rematerialisation policies can keep ("save:name").
Array checkpoint_name(const Array& x, const std::string& name);

// --- Layout

// Adds the axes that x does not have, in front.
Array broadcast(const Array& x, const std::vector<Axis>& axes, Loc loc = Loc::current());
// Broadcasts and transposes to exactly these axes in this order.
Array broadcast_to(const Array& x, const std::vector<Axis>& axes, Loc loc = Loc::current());
// The axes of x in another order; `order` names all of them.
Array transpose(const Array& x, const Axes& order, Loc loc = Loc::current());
Array rename(const Array& x, const std::string& from, const std::string& to, Loc loc = Loc::current());
Array rename(const Array& x, const Axes& from, const Axes& to, Loc loc = Loc::current());
// Replaces an axis by several whose sizes multiply to its size, row-major.
Array split_axis(const Array& x, const std::string& axis, const std::vector<Axis>& into,
                 Loc loc = Loc::current());
// Merges neighbouring axes; transposes first when they are not neighbours in this order.
Array merge_axes(const Array& x, const Axes& axes, const std::string& into, Loc loc = Loc::current());
// The `size` elements start, start + stride, ... along the axis.
Array slice(const Array& x, const std::string& axis, int64_t start, int64_t size, int64_t stride = 1,
            Loc loc = Loc::current());
// One element along the axis, without the axis.
Array index(const Array& x, const std::string& axis, int64_t i, Loc loc = Loc::current());
// Adds `low` zeros before and `high` zeros behind the elements of the axis.
Array pad(const Array& x, const std::string& axis, int64_t low, int64_t high, Loc loc = Loc::current());
// Joins arrays along an axis that they have; split() undoes it.
Array concat(const std::vector<Array>& xs, const std::string& axis, Loc loc = Loc::current());
std::vector<Array> split(const Array& x, const std::string& axis, const std::vector<int64_t>& sizes,
                         Loc loc = Loc::current());
// Joins arrays of one shape along a new axis at `position`; unstack() undoes it.
Array stack(const std::vector<Array>& xs, const std::string& axis, int64_t position = 0,
            Loc loc = Loc::current());
std::vector<Array> unstack(const Array& x, const std::string& axis, Loc loc = Loc::current());
[[noreturn]] void throw_unstack_count(const Array& x, const std::string& axis, size_t count, Loc loc);
template <size_t N>
std::array<Array, N> unstack(const Array& x, const std::string& axis, Loc loc = Loc::current()) {
  std::vector<Array> parts = unstack(x, axis, loc);
  if (parts.size() != N) throw_unstack_count(x, axis, N, loc);
  std::array<Array, N> out;
  for (size_t i = 0; i < N; ++i) out[i] = parts[i];
  return out;
}
Array reverse(const Array& x, const std::string& axis, Loc loc = Loc::current());

// --- Indexed

// Rows of the table along `axis`: result axes are index's, then the table's others. Index i32.
Array gather(const Array& table, const std::string& axis, const Array& index, Loc loc = Loc::current());
// The `size` elements of the axis from `start` on. `start` is an i32 scalar, clamped so that the slice lies
// inside.
Array dynamic_slice(const Array& x, const std::string& axis, const Array& start, int64_t size,
                    Loc loc = Loc::current());
// x with the elements of the axis from `start` on replaced by `update`. `start` is i32, a scalar or with axes
// of x, and clamped.
Array dynamic_update_slice(const Array& x, const std::string& axis, const Array& update, const Array& start,
                           Loc loc = Loc::current());
// Names of the axes of a cache in pages: of the rows of a step, of a pool's pages and their slots, of a row's
// list of pages.
struct PageAxes {
  std::string row = "row", page = "page", slot = "slot", entry = "entry";
};
// pool [page, slot:128, ...] (axes in any order) with row r of `rows` [row, ...] at page place[r] / 128, slot
// place[r] % 128; place i32 [row], negative: the row is left out. For inference only: it has no derivative.
// When it runs, a place outside the pool or one that two rows have is an error. An engine writes into the
// pool's memory if that is donated or read by nothing afterwards.
Array paged_write(const Array& pool, const Array& rows, const Array& place, const PageAxes& axes = {},
                  Loc loc = Loc::current());
// Sorted values along the axis and their i32 indices in x; equal values stay in order.
std::pair<Array, Array> sort(const Array& x, const std::string& axis, bool descending = false,
                             Loc loc = Loc::current());
// The k largest values along the axis, largest first, and their i32 indices in x.
std::pair<Array, Array> top_k(const Array& x, const std::string& axis, int64_t k, Loc loc = Loc::current());
// The i32 index of the first largest value along the axis, which the result does not have.
Array argmax(const Array& x, const std::string& axis, Loc loc = Loc::current());

// --- Reductions and contractions

enum class Order { kStriped, kSerial };  // numerics.md N4, N5
// The sum over the axes, which the result does not have, added in `acc`.
Array sum(const Array& x, const Axes& axes, Order order = Order::kStriped, DType acc = DType::f32,
          Loc loc = Loc::current());
Array mean(const Array& x, const Axes& axes, Loc loc = Loc::current());  // sum * (1 / n)
Array max(const Array& x, const Axes& axes, Loc loc = Loc::current());
Array min(const Array& x, const Axes& axes, Loc loc = Loc::current());
// The balanced tree of numerics.md N8 over the flattened axes; f32 or f64.
Array tree_sum(const Array& x, const Axes& axes, Loc loc = Loc::current());
// Cuts the axes into `cells` boxes each and returns the sum of squares of each box, in f64
// (docs/spec/ops.md). Result: the cut axes, with the number of boxes as their size.
Array box_sumsq(const Array& x, const Axes& axes, const std::vector<int64_t>& cells,
                Loc loc = Loc::current());
// i64 [lane:2], numerics.md N14.
Array fingerprint(const Array& x, Loc loc = Loc::current());
// w i8 times its scales, rounded to the scales' dtype, f32 or bf16 (numerics.md N7). `over` are neighbouring
// axes of w; scales has w's axes, but one axis `groups` in place of these: index k of them, counted
// row-major, of K has the scales of group k div (K / groups).
Array dequantize(const Array& w, const Array& scales, const Axes& over, const std::string& groups,
                 Loc loc = Loc::current());
// Contracts over the named axes (in this order; numerics.md N6, N7), batches over the other shared names.
Array dot(const Array& a, const Array& b, const Axes& over, DType dtype = DType::f32,
          Loc loc = Loc::current());
// How a product of bf16 operands is summed: as N7 says, or by the rule of tensor cores (numerics.md N23).
enum class ProductRule { kN7, kTc16 };
// As dot(); kTc16 is for bf16 operands alone.
Array dot(const Array& a, const Array& b, const Axes& over, DType dtype, ProductRule rule,
          Loc loc = Loc::current());
inline Array dot(const Array& a, const Array& b, const std::string& over, DType dtype = DType::f32,
                 Loc loc = Loc::current()) {
  return dot(a, b, Axes{over}, dtype, loc);
}
inline Array dot(const Array& a, const Array& b, const char* over, DType dtype = DType::f32,
                 Loc loc = Loc::current()) {
  return dot(a, b, Axes{over}, dtype, loc);
}
// Integers with a scale for each block of them (numerics.md N20).
struct Quantized {
  Array q;       // i8 [x's other axes, over]
  Array scales;  // f32 [x's other axes, blocks of over]
};
// Cuts x along the axes of `over`, flattened in this order, into blocks of `block` elements, to nearest.
Quantized quantize(const Array& x, const Axes& over, int64_t block, Loc loc = Loc::current());
// As quantize(), dithered by draws of `key`, u32[word:2]: an element's draw is counted by its row-major index
// in the whole array, of which x has the indices from `first`, an i64 scalar, on along its first axis.
Quantized quantize_dithered(const Array& x, const Axes& over, int64_t block, const Array& key,
                            const Array& first, Loc loc = Loc::current());
// The product of two values that were quantised over the same axes in blocks of the same size: a's other
// axes, then b's, in f32 or bf16 (numerics.md N20).
Array dot_int8(const Quantized& a, const Quantized& b, const Axes& over, int64_t block,
               DType dtype = DType::f32, Loc loc = Loc::current());
// As expert_dot and expert_outer below, of integers (numerics.md N20). The first multiplies results of
// quantize() over the same axes. The second cuts a to nearest and b dithered, over the rows of each expert;
// `key` and `first` number the draws of b as in quantize_dithered().
Array expert_dot_int8(const Quantized& x, const Quantized& w, const std::string& axis, const Array& expert,
                      const Axes& over, int64_t block, DType dtype = DType::f32, Loc loc = Loc::current());
Array expert_outer_int8(const Array& a, const Array& b, const Axis& axis, const Array& expert, int64_t block,
                        const Array& key, const Array& first, Loc loc = Loc::current());
// For each element of `expert`, i32 along `axis` of w: the dot of x's row with the chosen part of w
// (numerics.md N10). Axes: expert's, then w's that are neither `axis` nor in `over`. x may lack some of
// expert's axes.
Array expert_dot(const Array& x, const Array& w, const std::string& axis, const Array& expert,
                 const Axes& over, DType dtype = DType::f32, Loc loc = Loc::current());
Array expert_dot(const Array& x, const Array& w, const std::string& axis, const Array& expert,
                 const Axes& over, DType dtype, ProductRule rule, Loc loc = Loc::current());
// For each expert the sum, over the rows that chose it, of a's times b's elements: f32 [axis, a's axes, b's
// axes], without the axes of `expert`.
Array expert_outer(const Array& a, const Array& b, const Axis& axis, const Array& expert,
                   Loc loc = Loc::current());

// --- Fused

// The keys that a query may attend to (docs/spec/ops.md). Arrays that are set must have the axes given there.
struct AttentionMask {
  bool causal = true;
  int64_t window = 0;    // 0: no window
  Array prefix;          // i32
  Array query_segments;  // i32 [batch..., query]
  Array key_segments;    // i32 [batch..., key]
  Array key_limit;       // i32
  Array visible;         // bool [batch..., query, key]: only where true; batch axes or query may be left out
};
// Names of axes, scale, and optional inputs of flash_attention().
struct AttentionOptions {
  std::string query = "pos", key = "key_pos", head_dim = "head_dim";
  double scale = 0;         // 0: 1 / sqrt(head_dim), from f64
  double soft_cap = 0;      // 0: none
  Array sink;               // f32 over head axes, or empty
  Array query_origin;       // i32; empty: 0
  int64_t int8_slices = 0;  // ir::kInt8Slices: products are of integers (numerics.md N21)
};
// q [..., query, ..., head_dim]; k, v [..., key, ..., head_dim]; all f32 or all bf16. Result as q
// (numerics.md N9, N21).
Array flash_attention(const Array& q, const Array& k, const Array& v, const AttentionMask& mask,
                      const AttentionOptions& options = {}, Loc loc = Loc::current());
// Names of axes, scale, and optional inputs of paged_attention().
struct PagedAttentionOptions {
  PageAxes axes;
  std::string head_dim = "head_dim";
  double scale = 0;     // 0: 1 / sqrt(head_dim of q), from f64
  double soft_cap = 0;  // 0: none
  int64_t window = 0;   // 0: all keys; w: only those at positions > position - w
  Array sink;           // f32 over q's head axes, or empty
  int64_t int8_slices = 0;
};
// Attention of each row over the keys at positions 0 to position[r] of its own sequence, whose page p is page
// table[r][p] of the pools. q [row, ..., head_dim] has at most two axes of heads; the pools [page, slot:128,
// heads, head_dim] have one of them or none, in any order of axes. Fastest is a key pool with `slot` last and
// a value pool with `head_dim` last. All f32 or all bf16; values may have another head_dim. table i32 [row,
// entry], position i32 [row]; below 0 the row is padding and gives +0. The result is as q, head_dim as the
// values'; its bits are those of flash_attention over the gathered keys (numerics.md N9). Entries of pages of
// which a row sees no key are not read. For inference only: it has no derivative. When it runs, a page or a
// position outside is an error.
Array paged_attention(const Array& q, const Array& key_pool, const Array& value_pool, const Array& table,
                      const Array& position, const PagedAttentionOptions& options = {},
                      Loc loc = Loc::current());
// Per-row loss of f32 logits [..., axis] against i32 targets [...], with z * lse^2 added (numerics.md N11).
Array cross_entropy(const Array& logits, const Array& target, const std::string& axis, double z = 0,
                    Loc loc = Loc::current());

}  // namespace ostro
