// Shape rules of integer products (docs/spec/numerics.md N20): quantize, dot_int8, and those of experts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ostro/ir/program/int8_limits.h"
#include "ostro/ir/rules/shape_rules.h"

namespace ostro::ir::rules {
namespace {

using Names = std::vector<std::string>;

bool names_axis(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status check_block(const Op& op) {
  const int64_t block = op.attrs.i64("block");
  if (block < 1 || block > kMaxInt8Block)
    return fail(op, fmt::format("blocks of {}; a block has 1 to {} elements", block, kMaxInt8Block));
  return Status();
}

// The size of a block, and the axis of blocks, which no operand has.
Status check_blocks(const Op& op, const Shape& x) {
  RETURN_IF_ERROR(check_block(op));
  const Names& over = op.attrs.strs("over");
  if (over.empty()) return fail(op, "over names no axis");
  for (const std::string& name : over) {
    RETURN_IF_ERROR(need_axis(op, x, name));
    if (std::count(over.begin(), over.end(), name) > 1)
      return fail(op, fmt::format("[{}] names an axis twice", fmt::join(over, ", ")));
  }
  if (x.has(op.attrs.str("groups")))
    return fail(op, fmt::format("groups is \"{}\", an axis of {}; use another name", op.attrs.str("groups"),
                                x.str()));
  return Status();
}

// The shapes of q and s for a value with x's axes.
std::vector<Shape> quantized(const Op& op, const Shape& x) {
  const Names& over = op.attrs.strs("over");
  Shape q{DType::i8, {}}, s{DType::f32, {}};
  for (const Axis& a : x.axes)
    if (!names_axis(over, a.name)) q.axes.push_back(a);
  s.axes = q.axes;
  int64_t k = 1;
  for (const std::string& name : over) {
    q.axes.push_back({name, x.size_of(name)});
    k *= x.size_of(name);
  }
  const int64_t block = op.attrs.i64("block");
  s.axes.push_back({op.attrs.str("groups"), (k + block - 1) / block});
  return {q, s};
}

Status check_float(const Op& op, const Shape& x) {
  if (x.dtype == DType::f32 || x.dtype == DType::bf16) return Status();
  return fail(op, fmt::format("takes f32 or bf16, not {}", x.str()));
}

// What x is dithered with: a key, one origin per axis of x, and the sizes of the whole array.
Status check_draws(const Op& op, const Shape& x, const Shape& key, In origins) {
  if (key.dtype != DType::u32 || key.count() != 2)
    return fail(op, fmt::format("key is {}, not u32[word:2]", key.str()));
  for (size_t i = 0; i < origins.size(); ++i)
    if (origins[i] != scalar(DType::i64))
      return fail(
          op, fmt::format("the origin of \"{}\" is {}, not an i64 scalar", x.axes[i].name, origins[i].str()));
  if (const size_t given = op.attrs.ints("global_sizes").size(); given != x.axes.size())
    return fail(op, fmt::format("global_sizes has {} sizes for {}", given, x.str()));
  return Status();
}

// Both operands with their scales, as quantize leaves them.
Status check_quantized(const Op& op, In in) {
  for (size_t side : {size_t{0}, size_t{2}}) {
    RETURN_IF_ERROR(check_blocks(op, in[side]));
    const std::vector<Shape> expected = quantized(op, in[side]);
    if (in[side] != expected[0] || in[side + 1] != expected[1])
      return fail(op,
                  fmt::format("operands are {} and {}; quantize over [{}] in blocks of {} gives {} and {}",
                              in[side].str(), in[side + 1].str(), fmt::join(op.attrs.strs("over"), ", "),
                              op.attrs.i64("block"), expected[0].str(), expected[1].str()));
  }
  return Status();
}

}  // namespace

Shapes quantize(const Op& op, In in) {
  const Shape& x = in[0];
  RETURN_IF_ERROR(check_float(op, x));
  RETURN_IF_ERROR(check_blocks(op, x));
  const std::string& rounding = op.attrs.str("rounding");
  if (rounding != "nearest" && rounding != "dithered")
    return fail(op, fmt::format("rounding is \"{}\"; use nearest or dithered", rounding));
  const size_t operands = rounding == "nearest" ? 1 : 2 + x.axes.size();
  if (in.size() != operands)
    return fail(op,
                fmt::format("takes {} operands with rounding {}, {} given", operands, rounding, in.size()));
  if (rounding == "dithered") RETURN_IF_ERROR(check_draws(op, x, in[1], in.subspan(2)));
  return quantized(op, x);
}

Shapes dot_int8(const Op& op, In in) {
  const Names& over = op.attrs.strs("over");
  RETURN_IF_ERROR(check_quantized(op, in));
  const Shape &a = in[0], &b = in[2];
  const auto d = parse_dtype(op.attrs.str("dtype", "f32"));
  if (!d || (*d != DType::f32 && *d != DType::bf16)) return fail(op, "gives f32 or bf16");
  Shape out{*d, {}};
  for (const Axis& x : a.axes)
    if (!names_axis(over, x.name)) out.axes.push_back(x);
  for (const Axis& x : b.axes) {
    if (names_axis(over, x.name)) {
      if (x.size != a.size_of(x.name))
        return fail(op, fmt::format("axis \"{}\" is {} in {} but {} in {}", x.name, a.size_of(x.name),
                                    a.str(), x.size, b.str()));
      continue;
    }
    if (a.has(x.name))
      return fail(op, fmt::format("both operands have the axis \"{}\", which is not contracted: {} and {}; "
                                  "rename one",
                                  x.name, a.str(), b.str()));
    out.axes.push_back(x);
  }
  return std::vector<Shape>{out};
}

// As expert_dot, of integers.
Shapes expert_dot_int8(const Op& op, In in) {
  RETURN_IF_ERROR(check_quantized(op, in));
  RETURN_IF_ERROR(check_expert(op, in[4], in[5]));
  const Shape product[] = {in[0], in[2], in[4], in[5]};
  return expert_dot(op, product);
}

Shapes expert_outer_int8(const Op& op, In in) {
  const Shape& b = in[1];
  for (size_t side : {size_t{0}, size_t{1}}) RETURN_IF_ERROR(check_float(op, in[side]));
  RETURN_IF_ERROR(check_block(op));
  RETURN_IF_ERROR(check_expert(op, in[2], in[3]));
  if (in.size() != 5 + b.axes.size())
    return fail(op, fmt::format("takes {} operands for {}, {} given", 5 + b.axes.size(), b.str(), in.size()));
  RETURN_IF_ERROR(check_draws(op, b, in[4], in.subspan(5)));
  return expert_outer(op, in.first(4));
}

}  // namespace ostro::ir::rules
