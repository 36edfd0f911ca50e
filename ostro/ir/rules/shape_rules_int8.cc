// Shape rules of integer products (docs/spec/numerics.md N20): quantize and dot_int8.
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

// The size of a block, and the axis of blocks, which no operand has.
Status check_blocks(const Op& op, const Shape& x) {
  const int64_t block = op.attrs.i64("block");
  if (block < 1 || block > kMaxInt8Block)
    return fail(op, fmt::format("blocks of {}; a block has 1 to {} elements", block, kMaxInt8Block));
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

}  // namespace

Shapes quantize(const Op& op, In in) {
  const Shape& x = in[0];
  if (x.dtype != DType::f32 && x.dtype != DType::bf16)
    return fail(op, fmt::format("takes f32 or bf16, not {}", x.str()));
  RETURN_IF_ERROR(check_blocks(op, x));
  const std::string& rounding = op.attrs.str("rounding");
  if (rounding != "nearest" && rounding != "dithered")
    return fail(op, fmt::format("rounding is \"{}\"; use nearest or dithered", rounding));
  const size_t operands = rounding == "nearest" ? 1 : 2 + x.axes.size();
  if (in.size() != operands)
    return fail(op,
                fmt::format("takes {} operands with rounding {}, {} given", operands, rounding, in.size()));
  if (rounding == "dithered") {
    if (in[1].dtype != DType::u32 || in[1].count() != 2)
      return fail(op, fmt::format("key is {}, not u32[word:2]", in[1].str()));
    for (size_t i = 2; i < in.size(); ++i)
      if (in[i] != scalar(DType::i64))
        return fail(op, fmt::format("the origin of \"{}\" is {}, not an i64 scalar", x.axes[i - 2].name,
                                    in[i].str()));
    if (const size_t given = op.attrs.ints("global_sizes").size(); given != x.axes.size())
      return fail(op, fmt::format("global_sizes has {} sizes for {}", given, x.str()));
  }
  return quantized(op, x);
}

Shapes dot_int8(const Op& op, In in) {
  const Names& over = op.attrs.strs("over");
  for (size_t side : {size_t{0}, size_t{2}}) {
    RETURN_IF_ERROR(check_blocks(op, in[side]));
    const std::vector<Shape> expected = quantized(op, in[side]);
    if (in[side] != expected[0] || in[side + 1] != expected[1])
      return fail(
          op, fmt::format("operands are {} and {}; quantize over [{}] in blocks of {} gives {} and {}",
                          in[side].str(), in[side + 1].str(), fmt::join(over, ", "), op.attrs.i64("block"),
                          expected[0].str(), expected[1].str()));
  }
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

}  // namespace ostro::ir::rules
