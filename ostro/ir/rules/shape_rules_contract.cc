// Shape rules of reductions, contractions, indexed and fused ops.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/ir/program/product_rule.h"
#include "ostro/ir/rules/shape_rules.h"

namespace ostro::ir::rules {

Shapes reduction(const Op& op, In in) {
  Shape out = in[0];
  const bool one_axis = op.kind == OpKind::argmax;
  const std::vector<std::string> axes =
      one_axis ? std::vector<std::string>{op.attrs.str("axis")} : op.attrs.strs("axes");
  for (const auto& a : axes) {
    if (!out.has(a)) return fail(op, fmt::format("no axis \"{}\" in {}", a, in[0].str()));
    out = out.without(a);
  }
  if (op.kind == OpKind::argmax) return std::vector<Shape>{out.with_dtype(DType::i32)};
  if (op.kind == OpKind::sum) {
    const std::string order = op.attrs.str("order", "striped");
    if (order != "striped" && order != "serial")
      return fail(op, fmt::format("order \"{}\"; use striped or serial", order));
    const std::string acc = op.attrs.str("acc", "f32");
    if (acc != "f32" && acc != "f64") return fail(op, fmt::format("acc \"{}\"; use f32 or f64", acc));
    if (is_integer(in[0].dtype)) return std::vector<Shape>{out};
    if (!is_floating(in[0].dtype))
      return fail(op, fmt::format("no sum of {}; cast it", dtype_name(in[0].dtype)));
    if (in[0].dtype == DType::f64 && acc != "f64") return fail(op, "a sum of f64 has acc f64");
    return std::vector<Shape>{out.with_dtype(acc == "f64" ? DType::f64 : DType::f32)};
  }
  if (op.kind == OpKind::tree_sum) {
    if (in[0].dtype != DType::f32 && in[0].dtype != DType::f64) return fail(op, "needs f32 or f64");
    return std::vector<Shape>{out};
  }
  if (in[0].dtype == DType::boolean || in[0].dtype == DType::i8)
    return fail(op, fmt::format("no order on {}; cast it", dtype_name(in[0].dtype)));
  return std::vector<Shape>{out.with_dtype(in[0].dtype == DType::bf16 ? DType::f32 : in[0].dtype)};
}

Status check_rule(const Op& op, DType dtype) {
  if (!op.attrs.has(kProductRule)) return Status();
  const std::string& rule = op.attrs.str(kProductRule);
  if (rule != kTc16) return fail(op, fmt::format("rule \"{}\"; use {}, or leave it out", rule, kTc16));
  if (dtype != DType::bf16)
    return fail(op,
                fmt::format("rule {} multiplies bf16, not {}: cast both operands", rule, dtype_name(dtype)));
  return Status();
}

Shapes dot(const Op& op, In in) {
  const Shape &a = in[0], &b = in[1];
  if (a.dtype != b.dtype || (a.dtype != DType::f32 && a.dtype != DType::bf16))
    return fail(op, fmt::format("operands are {} and {}; both must be f32 or both bf16: cast one",
                                dtype_name(a.dtype), dtype_name(b.dtype)));
  RETURN_IF_ERROR(check_rule(op, a.dtype));
  const auto& over = op.attrs.strs("over");
  const auto d = parse_dtype(op.attrs.str("dtype", "f32"));
  if (!d || (*d != DType::f32 && *d != DType::bf16) || (*d == DType::bf16 && a.dtype == DType::f32))
    return fail(op, "gives f32, or bf16 from bf16 operands");
  const std::set<std::string> contracted(over.begin(), over.end());
  if (contracted.size() != over.size())
    return fail(op, fmt::format("[{}] names an axis twice", fmt::join(over, ", ")));
  for (const auto& n : over)
    if (!a.has(n) || !b.has(n))
      return fail(op, fmt::format("no axis \"{}\" in {}", n, a.has(n) ? b.str() : a.str()));
  for (const Axis& x : a.axes)
    if (b.has(x.name) && b.size_of(x.name) != x.size)
      return fail(op, fmt::format("axis \"{}\" is {} in {} but {} in {}", x.name, x.size, a.str(),
                                  b.size_of(x.name), b.str()));
  Shape out{*d, {}};
  for (const Axis& x : a.axes)
    if (!contracted.count(x.name)) out.axes.push_back(x);
  for (const Axis& x : b.axes)
    if (!contracted.count(x.name) && !a.has(x.name)) out.axes.push_back(x);
  return std::vector<Shape>{out};
}

Shapes dequantize(const Op& op, In in) {
  const Shape &w = in[0], &scales = in[1];
  if (w.dtype != DType::i8 || (scales.dtype != DType::f32 && scales.dtype != DType::bf16))
    return fail(op, fmt::format("takes i8 and scales in f32 or bf16, not {} and {}", w.str(), scales.str()));
  const auto& over = op.attrs.strs("over");
  const std::string& groups = op.attrs.str("groups");
  if (over.empty()) return fail(op, "over names no axis");
  ASSIGN_OR_RETURN(const int64_t first, need_axis(op, w, over[0]));
  int64_t count = 1;
  for (size_t i = 0; i < over.size(); ++i) {
    if (w.find(over[i]) != first + static_cast<int64_t>(i))
      return fail(op, fmt::format("[{}] are not neighbouring axes of {} in this order", fmt::join(over, ", "),
                                  w.str()));
    count *= w.size_of(over[i]);
  }
  ASSIGN_OR_RETURN(const int64_t at, need_axis(op, scales, groups));
  const int64_t size = scales.axes[static_cast<size_t>(at)].size;
  Shape expected{scales.dtype, w.axes};
  const auto from = expected.axes.begin() + first;
  expected.axes.erase(from, from + static_cast<int64_t>(over.size()));
  expected.axes.insert(expected.axes.begin() + first, {groups, size});
  if (scales != expected)
    return fail(op, fmt::format("scales are {}, but {} needs {}", scales.str(), w.str(), expected.str()));
  if (size < 1 || count % size != 0)
    return fail(op, fmt::format("{} groups do not divide the {} rows along [{}] of {}", size, count,
                                fmt::join(over, ", "), w.str()));
  return std::vector<Shape>{w.with_dtype(scales.dtype)};
}

Shapes gather(const Op& op, In in) {
  const Shape &table = in[0], &index = in[1];
  const auto& axis = op.attrs.str("axis");
  RETURN_IF_ERROR(need_axis(op, table, axis));
  if (index.dtype != DType::i32)
    return fail(op, fmt::format("index is {}, not i32", dtype_name(index.dtype)));
  if (index.has(axis))
    return fail(op, fmt::format("index {} has the gathered axis \"{}\"; rename it", index.str(), axis));
  Shape out{table.dtype, index.axes};
  for (const Axis& a : table.axes) {
    if (a.name == axis) continue;
    if (!index.has(a.name))
      out.axes.push_back(a);
    else if (index.size_of(a.name) != a.size)
      return fail(op, fmt::format("axis \"{}\" is {} in the table but {} in the index", a.name, a.size,
                                  index.size_of(a.name)));
  }
  return std::vector<Shape>{out};
}

Shapes scatter_add(const Op& op, In in) {
  const Shape &update = in[0], &index = in[1];
  if (!is_floating(update.dtype) || update.dtype == DType::f64) return fail(op, "update must be f32 or bf16");
  if (index.dtype != DType::i32)
    return fail(op, fmt::format("index is {}, not i32", dtype_name(index.dtype)));
  // Axes of index that the table shares ("batch" attr) stay; the rest of index is summed over.
  const std::vector<std::string> batch =
      op.attrs.has("batch") ? op.attrs.strs("batch") : std::vector<std::string>{};
  Shape out{DType::f32, {}};
  for (const Axis& a : update.axes)
    if (!index.has(a.name) || std::find(batch.begin(), batch.end(), a.name) != batch.end())
      out.axes.push_back(a);
  for (const Axis& a : index.axes)
    if (!update.has(a.name) || update.size_of(a.name) != a.size)
      return fail(
          op, fmt::format("axis \"{}\" of index {} is not in update {}", a.name, index.str(), update.str()));
  const int64_t position = op.attrs.i64("position");
  if (position < 0 || position > out.rank())
    return fail(op, fmt::format("position {} in {}", position, out.str()));
  out.axes.insert(out.axes.begin() + position, Axis{op.attrs.str("axis"), op.attrs.i64("size")});
  return std::vector<Shape>{out};
}

Shapes cross_entropy(const Op& op, In in) {
  const auto& axis = op.attrs.str("axis");
  if (in[0].dtype != DType::f32) return fail(op, "logits must be f32");
  if (!in[0].has(axis) || in[0].axes.back().name != axis)
    return fail(op, fmt::format("axis \"{}\" must be last in logits {}", axis, in[0].str()));
  const Shape row = in[0].without(axis);
  const bool sum = op.kind == OpKind::cross_entropy_sum;
  if (sum && in[1] != row)
    return fail(op, fmt::format("m {} does not fit logits {}", in[1].str(), in[0].str()));
  if (!sum && in[1] != row.with_dtype(DType::i32))
    return fail(op, fmt::format("target {} does not fit logits {}", in[1].str(), in[0].str()));
  if (in[0].axes.back().size < 1) return fail(op, fmt::format("logits {} have no class", in[0].str()));
  if (sum) return std::vector<Shape>{row};
  if (op.kind == OpKind::cross_entropy) return std::vector<Shape>{row, row, row, row};
  const auto d = parse_dtype(op.attrs.str("dtype", "f32"));
  if (!d || (*d != DType::f32 && *d != DType::bf16)) return fail(op, "gives f32 or bf16");
  return std::vector<Shape>{in[0].with_dtype(*d)};
}

}  // namespace ostro::ir::rules
