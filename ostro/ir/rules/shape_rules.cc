// The shape and dtype rule of every op: shape_rules_*.cc hold the families, this file the small ones and the
// table.
#include "ostro/ir/rules/shape_rules.h"

#include <fmt/format.h>

#include <cmath>

namespace ostro::ir {
namespace {

using namespace rules;

// For ops that work on a part `s` of a larger array: checks their attributes about the whole array.
Status check_global_sizes(const Op& op, const Shape& s) {
  const size_t given = op.attrs.ints("global_sizes").size();
  if (given == s.axes.size()) return Status();
  return fail(op, fmt::format("global_sizes has {} sizes for {}", given, s.str()));
}

// For a part of a larger array: the length of the whole array's boxes does not follow from the part's size.
Status check_box_lengths(const Op& op, const Shape& s) {
  const auto& axes = op.attrs.strs("axes");
  const auto &cells = op.attrs.ints("cells"), &lengths = op.attrs.ints("lengths");
  if (lengths.size() != axes.size()) return fail(op, "axes and lengths differ in length");
  for (size_t i = 0; i < axes.size(); ++i) {
    RETURN_IF_ERROR(need_axis(op, s, axes[i]));
    const int64_t size = s.size_of(axes[i]), length = lengths[i];
    if (length < 1 || (size + length - 1) / length > cells[i])
      return fail(op, fmt::format("{} boxes of length {} do not hold axis \"{}\" of {}", cells[i], length,
                                  axes[i], s.str()));
  }
  return Status();
}

Shapes state(const Op& op, In in) {
  if (op.kind == OpKind::fingerprint) {
    RETURN_IF_ERROR(check_global_sizes(op, in[0]));
    return std::vector<Shape>{Shape{DType::i64, {{"lane", 2}}}};
  }
  const auto& axes = op.attrs.strs("axes");
  const auto& cells = op.attrs.ints("cells");  // number of boxes along each named axis
  if (axes.size() != cells.size()) return fail(op, "axes and cells differ in length");
  if (in[0].dtype != DType::f32) return fail(op, "needs f32");
  for (const int64_t boxes : cells)
    if (boxes < 1) return fail(op, fmt::format("cells are 1 or more, not {}", boxes));
  if (op.attrs.has("lengths")) RETURN_IF_ERROR(check_box_lengths(op, in[0]));
  Shape out{DType::f64, {}};
  for (const Axis& a : in[0].axes)
    for (size_t i = 0; i < axes.size(); ++i)
      if (axes[i] == a.name) out.axes.push_back({a.name, cells[i]});
  if (out.axes.size() != axes.size())
    return fail(op, fmt::format("an axis of [{}] is not in {}", fmt::join(axes, ", "), in[0].str()));
  return std::vector<Shape>{out};
}

// Checks that every engine gets the same number from the double of a constant.
Status check_value(const Op& op, DType dtype, double value) {
  const auto refuse = [&](const char* why) {
    return fail(op, fmt::format("value {} for {}: {}", value, dtype_name(dtype), why));
  };
  if (dtype == DType::f64) return Status();
  if (is_floating(dtype)) {
    if (value != 0 && std::abs(value) < 0x1p-126) return refuse("too small for a normal number (N2)");
    return Status();
  }
  const double low = dtype == DType::i32   ? -0x1p31
                     : dtype == DType::i64 ? -0x1p63
                     : dtype == DType::i8  ? -0x1p7
                                           : 0,
               end = dtype == DType::i32   ? 0x1p31
                     : dtype == DType::i64 ? 0x1p63
                     : dtype == DType::u32 ? 0x1p32
                     : dtype == DType::i8  ? 0x1p7
                                           : 2;
  if (!(value >= low && value < end)) return refuse("out of range");
  if (value != std::floor(value)) return refuse("not a whole number");
  return Status();
}

Status check_ordered(const Op& op, const Shape& s) {
  if (s.dtype == DType::i8) return fail(op, fmt::format("no order on {}; cast it", s.str()));
  return Status();
}

// Checks the number of operands, then calls the rule of the family or handles the small op here.
Shapes infer(const Op& op, In in) {
  const OpKind k = op.kind;
  auto arity = [&](size_t n) -> Status {
    if (in.size() != n) return fail(op, fmt::format("takes {} operands, {} given", n, in.size()));
    return Status();
  };
  if (is_elementwise(k)) {
    RETURN_IF_ERROR(arity(k >= OpKind::add && k <= OpKind::ge ? 2 : k == OpKind::select ? 3 : 1));
    return elementwise(op, in);
  }
  if (is_collective(k)) {
    RETURN_IF_ERROR(arity(1));
    return collective(op, in);
  }
  switch (k) {
    case OpKind::constant: {
      RETURN_IF_ERROR(arity(0));
      const auto d = parse_dtype(op.attrs.str("dtype"));
      if (!d) return fail(op, fmt::format("unknown dtype \"{}\"", op.attrs.str("dtype")));
      ASSIGN_OR_RETURN(Shape out, shape_from_attrs(op, *d));
      if (op.attrs.has("data") && static_cast<int64_t>(op.attrs.str("data").size()) != 2 * out.bytes())
        return fail(op, fmt::format("data has {} hex digits, {} needs {}", op.attrs.str("data").size(),
                                    out.str(), 2 * out.bytes()));
      if (!op.attrs.has("data")) RETURN_IF_ERROR(check_value(op, *d, op.attrs.f64("value")));
      return std::vector<Shape>{out};
    }
    case OpKind::iota:
      RETURN_IF_ERROR(arity(1));
      return std::vector<Shape>{Shape{DType::i32, {{op.attrs.str("axis"), op.attrs.i64("size")}}}};
    case OpKind::random: {
      ASSIGN_OR_RETURN(Shape out,
                       shape_from_attrs(op, op.attrs.str("kind") == "bits" ? DType::u32 : DType::f32));
      RETURN_IF_ERROR(arity(1 + out.axes.size()));
      RETURN_IF_ERROR(check_global_sizes(op, out));
      if (in[0].dtype != DType::u32 || in[0].count() != 2)
        return fail(op, fmt::format("key is {}, not u32[word:2]", in[0].str()));
      return std::vector<Shape>{out};
    }
    case OpKind::fold_in:
      RETURN_IF_ERROR(arity(2));
      if (in[0].dtype != DType::u32 || in[0].count() != 2 || !in[1].axes.empty() || !is_integer(in[1].dtype))
        return fail(op, "takes a key and an integer scalar");
      return std::vector<Shape>{in[0]};
    case OpKind::broadcast: RETURN_IF_ERROR(arity(1)); return broadcast(op, in);
    case OpKind::concat:
    case OpKind::stack:
      if (in.empty()) return fail(op, "needs at least one operand");
      return layout(op, in);
    case OpKind::transpose:
    case OpKind::rename:
    case OpKind::split_axis:
    case OpKind::merge_axes:
    case OpKind::slice:
    case OpKind::pad:
    case OpKind::split:
    case OpKind::unstack:
    case OpKind::reverse: RETURN_IF_ERROR(arity(1)); return layout(op, in);
    case OpKind::dynamic_slice: {
      RETURN_IF_ERROR(arity(2));
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, in[0], op.attrs.str("axis")));
      if (in[1] != scalar(DType::i32))
        return fail(op, fmt::format("start is {}, not an i32 scalar", in[1].str()));
      Shape out = in[0];
      if (op.attrs.i64("size") > out.axes[static_cast<size_t>(at)].size)
        return fail(op, fmt::format("size {} exceeds {}", op.attrs.i64("size"), in[0].str()));
      out.axes[static_cast<size_t>(at)].size = op.attrs.i64("size");
      return std::vector<Shape>{out};
    }
    case OpKind::dynamic_update_slice: {
      RETURN_IF_ERROR(arity(3));
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, in[0], op.attrs.str("axis")));
      Shape update = in[1];
      if (update.rank() != in[0].rank() || update.find(op.attrs.str("axis")) != at ||
          update.size_of(op.attrs.str("axis")) > in[0].axes[static_cast<size_t>(at)].size)
        return fail(op, fmt::format("update {} does not fit into {}", in[1].str(), in[0].str()));
      update.axes[static_cast<size_t>(at)].size = in[0].axes[static_cast<size_t>(at)].size;
      if (update != in[0])
        return fail(op, fmt::format("update {} does not fit into {}", in[1].str(), in[0].str()));
      if (in[2].dtype != DType::i32) return fail(op, "start must be i32");
      for (const Axis& a : in[2].axes)
        if (a.name == op.attrs.str("axis") || !in[0].has(a.name) || in[0].size_of(a.name) != a.size)
          return fail(op, fmt::format("start {} has axes that {} has not", in[2].str(), in[0].str()));
      return std::vector<Shape>{in[0]};
    }
    case OpKind::paged_write: RETURN_IF_ERROR(arity(3)); return paged_write(op, in);
    case OpKind::gather: RETURN_IF_ERROR(arity(3)); return gather(op, in);
    case OpKind::scatter_add: RETURN_IF_ERROR(arity(3)); return scatter_add(op, in);
    case OpKind::sort: {
      RETURN_IF_ERROR(arity(1));
      RETURN_IF_ERROR(check_ordered(op, in[0]));
      RETURN_IF_ERROR(need_axis(op, in[0], op.attrs.str("axis")));
      return std::vector<Shape>{in[0], in[0].with_dtype(DType::i32)};
    }
    case OpKind::top_k: {
      RETURN_IF_ERROR(arity(1));
      RETURN_IF_ERROR(check_ordered(op, in[0]));
      ASSIGN_OR_RETURN(int64_t at, need_axis(op, in[0], op.attrs.str("axis")));
      Shape out = in[0];
      if (op.attrs.i64("k") < 1 || op.attrs.i64("k") > out.axes[static_cast<size_t>(at)].size)
        return fail(op, fmt::format("k {} for {}", op.attrs.i64("k"), in[0].str()));
      out.axes[static_cast<size_t>(at)].size = op.attrs.i64("k");
      return std::vector<Shape>{out, out.with_dtype(DType::i32)};
    }
    case OpKind::sum:
    case OpKind::reduce_max:
    case OpKind::reduce_min:
    case OpKind::argmax:
    case OpKind::tree_sum: RETURN_IF_ERROR(arity(1)); return reduction(op, in);
    case OpKind::dot: RETURN_IF_ERROR(arity(2)); return dot(op, in);
    case OpKind::dequantize: RETURN_IF_ERROR(arity(2)); return dequantize(op, in);
    case OpKind::quantize:
      if (in.empty()) return fail(op, "needs an operand");
      return quantize(op, in);
    case OpKind::dot_int8: RETURN_IF_ERROR(arity(4)); return dot_int8(op, in);
    case OpKind::expert_dot_int8: RETURN_IF_ERROR(arity(6)); return expert_dot_int8(op, in);
    case OpKind::expert_outer_int8:
      if (in.size() < 5) return fail(op, "takes a, b, expert, origin, key and origins");
      return expert_outer_int8(op, in);
    case OpKind::expert_dot:
    case OpKind::expert_outer: RETURN_IF_ERROR(arity(4)); return experts(op, in);
    case OpKind::attention:
      if (in.size() < 4) return fail(op, "takes q, k, v, q_origin and mask operands");
      return attention(op, in);
    case OpKind::attention_grad:
      if (in.size() < 8) return fail(op, "takes q, k, v, o, m, r, do, q_origin and mask operands");
      return attention(op, in);
    case OpKind::paged_attention:
      RETURN_IF_ERROR(arity(op.attrs.i64("sink", 0) != 0 ? 6 : 5));
      return paged_attention(op, in);
    case OpKind::cross_entropy: RETURN_IF_ERROR(arity(3)); return cross_entropy(op, in);
    case OpKind::cross_entropy_sum: RETURN_IF_ERROR(arity(2)); return cross_entropy(op, in);
    case OpKind::cross_entropy_grad: RETURN_IF_ERROR(arity(7)); return cross_entropy(op, in);
    case OpKind::box_sumsq: RETURN_IF_ERROR(arity(1)); return state(op, in);
    case OpKind::fingerprint:
      if (in.empty()) return fail(op, "needs an operand");
      RETURN_IF_ERROR(arity(1 + in[0].axes.size()));
      return state(op, in);
    case OpKind::scan:
    case OpKind::cond:
    case OpKind::custom: return regions(op, in);
    default: return fail(op, "has no shape rule");
  }
}

}  // namespace

Result<std::vector<Shape>> infer_shapes(const Op& op, std::span<const Shape> in) {
  try {
    ASSIGN_OR_RETURN(std::vector<Shape> out, infer(op, in));
    for (const Shape& s : out)
      if (const Status sound = check_shape(s); !sound.ok()) return fail(op, sound.error().message());
    return out;
  } catch (const AttrError& e) {
    return fail(op, e.message);
  }
}

}  // namespace ostro::ir
