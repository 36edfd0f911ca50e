// Shape rules of dots whose second operand is chosen row by row (docs/spec/numerics.md N10).
#include <fmt/format.h>

#include <algorithm>

#include "ostro/ir/rules/shape_rules.h"

namespace ostro::ir::rules {
namespace {

bool is_named(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status check_dtypes(const Op& op, In in) {
  if (in[0].dtype != in[1].dtype || (in[0].dtype != DType::f32 && in[0].dtype != DType::bf16))
    return fail(op, fmt::format("operands are {} and {}; both must be f32 or both bf16: cast one",
                                dtype_name(in[0].dtype), dtype_name(in[1].dtype)));
  RETURN_IF_ERROR(check_rule(op, in[0].dtype));
  return check_expert(op, in[2], in[3]);
}

// An axis that both shapes have must have one size.
Status check_sizes(const Op& op, const Shape& a, const Shape& b) {
  for (const Axis& x : a.axes)
    if (b.has(x.name) && b.size_of(x.name) != x.size)
      return fail(op, fmt::format("axis \"{}\" is {} in {} but {} in {}", x.name, x.size, a.str(),
                                  b.size_of(x.name), b.str()));
  return Status();
}

}  // namespace

Status check_expert(const Op& op, const Shape& expert, const Shape& origin) {
  if (expert.dtype != DType::i32)
    return fail(op, fmt::format("expert is {}, not i32", dtype_name(expert.dtype)));
  if (!origin.axes.empty() || origin.dtype != DType::i64)
    return fail(op, fmt::format("origin is {}, not an i64 scalar", origin.str()));
  return Status();
}

Shapes expert_dot(const Op& op, In in) {
  const Shape &x = in[0], &w = in[1], &expert = in[2];
  const std::string& axis = op.attrs.str("axis");
  RETURN_IF_ERROR(need_axis(op, w, axis));
  const auto& over = op.attrs.strs("over");
  for (const std::string& name : over) {
    if (std::count(over.begin(), over.end(), name) > 1)
      return fail(op, fmt::format("[{}] names an axis twice", fmt::join(over, ", ")));
    if (name == axis || !x.has(name) || !w.has(name))
      return fail(op, fmt::format("cannot contract over \"{}\": {} and {}, experts along \"{}\"", name,
                                  x.str(), w.str(), axis));
  }
  RETURN_IF_ERROR(check_sizes(op, x, w));
  RETURN_IF_ERROR(check_sizes(op, x, expert));
  for (const Axis& a : x.axes)
    if (is_named(over, a.name) == expert.has(a.name))
      return fail(op, fmt::format("axis \"{}\" of {} must be either in expert {} or contracted over [{}]",
                                  a.name, x.str(), expert.str(), fmt::join(over, ", ")));
  const auto d = parse_dtype(op.attrs.str("dtype", "f32"));
  if (!d || (*d != DType::f32 && *d != DType::bf16) || (*d == DType::bf16 && x.dtype == DType::f32))
    return fail(op, "gives f32, or bf16 from bf16 operands");
  Shape out{*d, expert.axes};
  for (const Axis& a : w.axes) {
    if (expert.has(a.name))
      return fail(
          op, fmt::format("axis \"{}\" is in {} and in expert {}; rename it", a.name, w.str(), expert.str()));
    if (a.name != axis && !is_named(over, a.name)) out.axes.push_back(a);
  }
  return std::vector<Shape>{out};
}

Shapes expert_outer(const Op& op, In in) {
  const Shape &a = in[0], &b = in[1], &expert = in[2];
  const std::string& axis = op.attrs.str("axis");
  Shape out{DType::f32, {{axis, op.attrs.i64("size")}}};
  for (const Shape* s : {&a, &b}) {
    RETURN_IF_ERROR(check_sizes(op, *s, expert));
    for (const Axis& x : s->axes) {
      if (expert.has(x.name)) continue;
      if (out.has(x.name))
        return fail(op, fmt::format("axis \"{}\" would be twice in the result of {} and {}; rename one",
                                    x.name, a.str(), b.str()));
      out.axes.push_back(x);
    }
  }
  if (expert.has(axis))
    return fail(op, fmt::format("axis \"{}\" of the result is in expert {}; rename it", axis, expert.str()));
  return std::vector<Shape>{out};
}

Shapes experts(const Op& op, In in) {
  RETURN_IF_ERROR(check_dtypes(op, in));
  return op.kind == OpKind::expert_dot ? expert_dot(op, in) : expert_outer(op, in);
}

}  // namespace ostro::ir::rules
