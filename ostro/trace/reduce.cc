// Reductions, contractions and the fused ops.
#include <cmath>

#include <fmt/format.h>

#include "ostro/ir/program/product_rule.h"
#include "ostro/trace/frame.h"
#include "ostro/trace/ops.h"

namespace ostro {
namespace {
using ir::OpKind;

// The axis of the blocks' scales.
constexpr const char* kBlocksAxis = "blocks";
}  // namespace

Array sum(const Array& x, const Axes& axes, Order order, DType acc, Loc loc) {
  return apply(OpKind::sum, {x},
               {{"axes", axes},
                {"order", std::string(order == Order::kSerial ? "serial" : "striped")},
                {"acc", std::string(ir::dtype_name(acc))}},
               loc);
}

Array mean(const Array& x, const Axes& axes, Loc loc) {
  int64_t n = 1;
  for (const auto& a : axes) n *= x.size(a);
  if (n == 0)
    trace_fail(fmt::format("mean: {} has no elements along [{}]", x.shape().str(), fmt::join(axes, ", ")),
               loc);
  // 1 / n in f64, then f32: one rounding, since f64 holds more than twice f32's digits.
  const auto inverse = static_cast<float>(1.0 / static_cast<double>(n));
  return Operand(sum(x, axes, Order::kStriped, DType::f32, loc), loc) * Operand(inverse, loc);
}

Array max(const Array& x, const Axes& axes, Loc loc) {
  return apply(OpKind::reduce_max, {x}, {{"axes", axes}}, loc);
}
Array min(const Array& x, const Axes& axes, Loc loc) {
  return apply(OpKind::reduce_min, {x}, {{"axes", axes}}, loc);
}
Array tree_sum(const Array& x, const Axes& axes, Loc loc) {
  return apply(OpKind::tree_sum, {x}, {{"axes", axes}}, loc);
}

Array box_sumsq(const Array& x, const Axes& axes, const std::vector<int64_t>& cells, Loc loc) {
  return apply(OpKind::box_sumsq, {x}, {{"axes", axes}, {"cells", cells}}, loc);
}

Array fingerprint(const Array& x, Loc loc) {
  std::vector<Array> operands{x};
  std::vector<int64_t> sizes;
  for (const Axis& a : x.shape().axes) {
    operands.push_back(full(0, DType::i64, {}, loc));
    sizes.push_back(a.size);
  }
  return apply(OpKind::fingerprint, operands, {{"global_sizes", sizes}}, loc);
}

Array argmax(const Array& x, const std::string& axis, Loc loc) {
  return apply(OpKind::argmax, {x}, {{"axis", axis}}, loc);
}

std::pair<Array, Array> sort(const Array& x, const std::string& axis, bool descending, Loc loc) {
  auto r = apply_n(OpKind::sort, {x}, {{"axis", axis}, {"descending", int64_t{descending}}}, {}, loc);
  return {r[0], r[1]};
}

std::pair<Array, Array> top_k(const Array& x, const std::string& axis, int64_t k, Loc loc) {
  auto r = apply_n(OpKind::top_k, {x}, {{"axis", axis}, {"k", k}}, {}, loc);
  return {r[0], r[1]};
}

namespace {

ir::Attrs with_rule(ir::Attrs attrs, ProductRule rule) {
  if (rule == ProductRule::kTc16) attrs.set(ir::kProductRule, std::string(ir::kTc16));
  return attrs;
}

}  // namespace

Array dot(const Array& a, const Array& b, const Axes& over, DType dtype, Loc loc) {
  return dot(a, b, over, dtype, ProductRule::kN7, loc);
}
Array dot(const Array& a, const Array& b, const Axes& over, DType dtype, ProductRule rule, Loc loc) {
  return apply(OpKind::dot, {a, b},
               with_rule({{"over", over}, {"dtype", std::string(ir::dtype_name(dtype))}}, rule), loc);
}

Array dequantize(const Array& w, const Array& scales, const Axes& over, const std::string& groups, Loc loc) {
  return apply(OpKind::dequantize, {w, scales}, {{"over", over}, {"groups", groups}}, loc);
}

Quantized quantize(const Array& x, const Axes& over, int64_t block, Loc loc) {
  auto r = apply_n(OpKind::quantize, {x},
                   {{"over", over},
                    {"block", block},
                    {"groups", std::string(kBlocksAxis)},
                    {"rounding", std::string("nearest")}},
                   {}, loc);
  return {r[0], r[1]};
}

namespace {

// Adds the origins of x's axes to the operands; returns the sizes of the whole array.
std::vector<int64_t> add_origins(const Array& x, const Array& first, std::vector<Array>& operands, Loc loc) {
  std::vector<int64_t> sizes;
  for (const Axis& a : x.shape().axes) {
    operands.push_back(sizes.empty() ? first : full(0, DType::i64, {}, loc));
    sizes.push_back(a.size);
  }
  return sizes;
}

}  // namespace

Quantized quantize_dithered(const Array& x, const Axes& over, int64_t block, const Array& key,
                            const Array& first, Loc loc) {
  std::vector<Array> operands{x, key};
  const std::vector<int64_t> sizes = add_origins(x, first, operands, loc);
  auto r = apply_n(OpKind::quantize, operands,
                   {{"over", over},
                    {"block", block},
                    {"groups", std::string(kBlocksAxis)},
                    {"rounding", std::string("dithered")},
                    {"global_sizes", sizes}},
                   {}, loc);
  return {r[0], r[1]};
}

Array dot_int8(const Quantized& a, const Quantized& b, const Axes& over, int64_t block, DType dtype,
               Loc loc) {
  return apply(OpKind::dot_int8, {a.q, a.scales, b.q, b.scales},
               {{"over", over},
                {"block", block},
                {"groups", std::string(kBlocksAxis)},
                {"dtype", std::string(ir::dtype_name(dtype))}},
               loc);
}

Array expert_dot_int8(const Quantized& x, const Quantized& w, const std::string& axis, const Array& expert,
                      const Axes& over, int64_t block, DType dtype, Loc loc) {
  return apply(OpKind::expert_dot_int8, {x.q, x.scales, w.q, w.scales, expert, full(0, DType::i64, {}, loc)},
               {{"axis", axis},
                {"over", over},
                {"block", block},
                {"groups", std::string(kBlocksAxis)},
                {"dtype", std::string(ir::dtype_name(dtype))}},
               loc);
}

Array expert_outer_int8(const Array& a, const Array& b, const Axis& axis, const Array& expert, int64_t block,
                        const Array& key, const Array& first, Loc loc) {
  std::vector<Array> operands{a, b, expert, full(0, DType::i64, {}, loc), key};
  const std::vector<int64_t> sizes = add_origins(b, first, operands, loc);
  return apply(OpKind::expert_outer_int8, operands,
               {{"axis", axis.name}, {"size", axis.size}, {"block", block}, {"global_sizes", sizes}}, loc);
}

Array expert_dot(const Array& x, const Array& w, const std::string& axis, const Array& expert,
                 const Axes& over, DType dtype, Loc loc) {
  return expert_dot(x, w, axis, expert, over, dtype, ProductRule::kN7, loc);
}
Array expert_dot(const Array& x, const Array& w, const std::string& axis, const Array& expert,
                 const Axes& over, DType dtype, ProductRule rule, Loc loc) {
  return apply(
      OpKind::expert_dot, {x, w, expert, full(0, DType::i64, {}, loc)},
      with_rule({{"axis", axis}, {"over", over}, {"dtype", std::string(ir::dtype_name(dtype))}}, rule), loc);
}

Array expert_outer(const Array& a, const Array& b, const Axis& axis, const Array& expert, Loc loc) {
  return apply(OpKind::expert_outer, {a, b, expert, full(0, DType::i64, {}, loc)},
               {{"axis", axis.name}, {"size", axis.size}}, loc);
}

namespace {

// The scale of attention: as given, or of heads this wide.
double scale_of(double given, int64_t head_dim) {
  const double scale = given != 0 ? given : 1.0 / std::sqrt(static_cast<double>(head_dim));  // exact IEEE
  return static_cast<double>(static_cast<float>(scale));
}

}  // namespace

Array flash_attention(const Array& q, const Array& k, const Array& v, const AttentionMask& mask,
                      const AttentionOptions& o, Loc loc) {
  ir::Attrs attrs{{"query", o.query}, {"key", o.key}, {"head_dim", o.head_dim}};
  attrs.set("scale", scale_of(o.scale, q.size(o.head_dim)));
  if (o.soft_cap != 0) attrs.set("soft_cap", o.soft_cap);
  if (mask.causal) attrs.set("causal", int64_t{1});
  if (mask.window != 0) attrs.set("window", mask.window);
  if (o.int8_slices != 0) attrs.set("int8_slices", o.int8_slices);
  std::vector<Array> operands{q, k, v,
                              o.query_origin.valid() ? o.query_origin : full(0, DType::i64, {}, loc)};
  if (mask.query_segments.valid() != mask.key_segments.valid())
    trace_fail("attention: query_segments and key_segments come together", loc);
  if (mask.query_segments.valid()) {
    attrs.set("segments", int64_t{1});
    operands.push_back(mask.query_segments);
    operands.push_back(mask.key_segments);
  }
  if (mask.prefix.valid()) {
    attrs.set("prefix", int64_t{1});
    operands.push_back(mask.prefix);
  }
  if (mask.key_limit.valid()) {
    attrs.set("key_limit", int64_t{1});
    operands.push_back(mask.key_limit);
  }
  if (mask.visible.valid()) {
    attrs.set("visible", int64_t{1});
    operands.push_back(mask.visible);
  }
  if (o.sink.valid()) {
    attrs.set("sink", int64_t{1});
    operands.push_back(cast(o.sink, DType::f32, loc));  // a parameter of a bf16 policy, too
  }
  return apply_n(OpKind::attention, operands, std::move(attrs), {}, loc)[0];
}

Array paged_attention(const Array& q, const Array& key_pool, const Array& value_pool, const Array& table,
                      const Array& position, const PagedAttentionOptions& o, Loc loc) {
  ir::Attrs attrs{{"row", o.axes.row},      {"page", o.axes.page},
                  {"slot", o.axes.slot},    {"entry", o.axes.entry},
                  {"head_dim", o.head_dim}, {"scale", scale_of(o.scale, q.size(o.head_dim))}};
  if (o.soft_cap != 0) attrs.set("soft_cap", o.soft_cap);
  if (o.window != 0) attrs.set("window", o.window);
  if (o.int8_slices != 0) attrs.set("int8_slices", o.int8_slices);
  std::vector<Array> operands{q, key_pool, value_pool, table, position};
  if (o.sink.valid()) {
    attrs.set("sink", int64_t{1});
    operands.push_back(cast(o.sink, DType::f32, loc));
  }
  return apply(OpKind::paged_attention, operands, std::move(attrs), loc);
}

Array cross_entropy(const Array& logits, const Array& target, const std::string& axis, double z, Loc loc) {
  return apply_n(OpKind::cross_entropy, {logits, target, full(0, DType::i64, {}, loc)},
                 {{"axis", axis}, {"z", z}}, {}, loc)[0];
}

}  // namespace ostro
