// Shape and dtype rules of elementwise ops.
#include <fmt/format.h>

#include "ostro/ir/rules/shape_rules.h"

namespace ostro::ir::rules {
namespace {

bool is_float_arith(OpKind k) { return (k >= OpKind::exp && k <= OpKind::floor); }

// f32 for f32 and bf16 operands (bf16 is a storage type: read exactly, computed in f32), f64 for f64.
Result<DType> arithmetic_dtype(const Op& op, In in) {
  bool f64 = false, f32 = false;
  for (const Shape& s : in) {
    f64 |= s.dtype == DType::f64;
    f32 |= s.dtype == DType::f32 || s.dtype == DType::bf16;
  }
  if (f64 && f32)
    return fail(op,
                fmt::format("mixes f64 and {}; cast one",
                            in[0].dtype == DType::f64 ? dtype_name(in[1].dtype) : dtype_name(in[0].dtype)));
  if (f64 || f32) {
    for (const Shape& s : in)
      if (!is_floating(s.dtype))
        return fail(
            op, fmt::format("mixes {} and {}; cast one", dtype_name(in[0].dtype), dtype_name(in[1].dtype)));
    return f64 ? DType::f64 : DType::f32;
  }
  for (const Shape& s : in)
    if (s.dtype != in[0].dtype)
      return fail(op, fmt::format("mixes {} and {}; cast one", dtype_name(in[0].dtype), dtype_name(s.dtype)));
  return in[0].dtype;
}

Status same_axes(const Op& op, In in) {
  for (const Shape& s : in)
    if (s.axes != in[0].axes)
      return fail(op, fmt::format("operands have axes {} and {}; broadcast one", in[0].str(), s.str()));
  return Status();
}

}  // namespace

Shapes elementwise(const Op& op, In in) {
  RETURN_IF_ERROR(same_axes(op, in));
  const OpKind k = op.kind;
  Shape out = in[0];
  if (k == OpKind::cast || k == OpKind::use) {
    const auto d = parse_dtype(op.attrs.str("dtype"));
    if (!d) return fail(op, fmt::format("unknown dtype \"{}\"", op.attrs.str("dtype")));
    if (k == OpKind::use && (in[0].dtype != DType::f32 && in[0].dtype != *d))
      return fail(op, "reads f32 parameters");
    if (*d == DType::i8 && in[0].dtype != DType::i8)
      return fail(op, fmt::format("nothing is cast to i8, {} neither: it is for stored matrices and for what "
                                  "quantize gives",
                                  in[0].str()));
    return std::vector<Shape>{out.with_dtype(*d)};
  }
  for (const Shape& s : in)
    if (s.dtype == DType::i8)
      return fail(op, fmt::format("no arithmetic on {}; cast it, or dequantize it", s.str()));
  if (k == OpKind::select) {
    if (in[0].dtype != DType::boolean)
      return fail(op, fmt::format("condition is {}, not bool", dtype_name(in[0].dtype)));
    if (in[1].dtype == DType::boolean && in[2].dtype == DType::boolean) return std::vector<Shape>{out};
    if (in[1].dtype == DType::bf16 && in[2].dtype == DType::bf16)
      return std::vector<Shape>{out.with_dtype(DType::bf16)};
    ASSIGN_OR_RETURN(DType d, arithmetic_dtype(op, in.subspan(1)));
    return std::vector<Shape>{out.with_dtype(d)};
  }
  if (k == OpKind::logical_not) {
    if (in[0].dtype != DType::boolean) return fail(op, "needs bool");
    return std::vector<Shape>{out};
  }
  if (k == OpKind::is_finite) {
    if (!is_floating(in[0].dtype)) return fail(op, "needs a floating type");
    return std::vector<Shape>{out.with_dtype(DType::boolean)};
  }
  if (k >= OpKind::eq && k <= OpKind::ge) {
    if (in[0].dtype == DType::boolean && in[1].dtype == DType::boolean &&
        (k == OpKind::eq || k == OpKind::ne))
      return std::vector<Shape>{out};
    ASSIGN_OR_RETURN(DType d, arithmetic_dtype(op, in));
    if (d == DType::boolean) return fail(op, "bool has no order");
    return std::vector<Shape>{out.with_dtype(DType::boolean)};
  }
  ASSIGN_OR_RETURN(DType d, arithmetic_dtype(op, in));
  const bool bitwise = k >= OpKind::bit_and && k <= OpKind::shr;
  if (bitwise) {
    const bool logical = k <= OpKind::bit_xor && d == DType::boolean;
    if (!is_integer(d) && !logical) return fail(op, fmt::format("needs integers, not {}", dtype_name(d)));
  } else if (d == DType::boolean) {
    return fail(op, "no arithmetic on bool; cast it");
  }
  if (k == OpKind::rem && !is_integer(d)) return fail(op, "needs integers");
  if (is_float_arith(k) && !is_floating(d))
    return fail(op, fmt::format("needs a floating type, not {}", dtype_name(d)));
  if (is_float_arith(k) && d == DType::f64 && k != OpKind::sqrt)
    return fail(op, "is defined for f32 and bf16");
  return std::vector<Shape>{out.with_dtype(d)};
}

}  // namespace ostro::ir::rules
