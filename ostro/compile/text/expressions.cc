#include "ostro/compile/text/expressions.h"

#include <fmt/format.h>

#include "ostro/base/check.h"

namespace ostro::compile {
namespace {

using ir::DType;
using ir::OpKind;

bool is_f32(DType d) { return d == DType::f32 || d == DType::bf16; }

// "32" for f32 and bf16, "64" for f64.
const char* width(DType d) { return d == DType::f64 ? "64" : "32"; }

const char* unsigned_of(DType d) { return d == DType::i64 ? "u64" : "u32"; }

std::string cast_expr(DType from, DType to, const std::string& x) {
  if (to == DType::boolean) return fmt::format("(u8)({} != 0)", x);
  if (to == DType::bf16) return fmt::format("round_bf16((float){})", x);
  if (ir::is_integer(to) && ir::is_floating(from))
    return fmt::format("to_{}((double){})", register_type(to), x);
  if (to == DType::f64 && is_f32(from))
    return fmt::format("(double)flush32({})", x);  // else f32 -> f64 -> f32 may be folded
  return fmt::format("({}){}", register_type(to), x);
}

std::string unary(OpKind k, DType d, const std::string& x, const Dialect& dialect) {
  if (ir::is_integer(d)) {
    const char* t = register_type(d);
    if (k == OpKind::neg) return fmt::format("({})(0 - ({}){})", t, unsigned_of(d), x);
    if (d == DType::u32) return x;
    return fmt::format("({0} < 0 ? ({1})(0 - ({2}){0}) : {0})", x, t, unsigned_of(d));
  }
  switch (k) {
    case OpKind::neg: return fmt::format("neg{}({})", width(d), x);
    case OpKind::abs: return fmt::format("abs{}({})", width(d), x);
    case OpKind::sqrt: return fmt::format("{}({})", d == DType::f64 ? dialect.sqrt64 : dialect.sqrt32, x);
    case OpKind::floor: return fmt::format("{}(flush32({}))", dialect.floor32, x);
    case OpKind::log2: return fmt::format("log2_32({})", x);
    default: return fmt::format("{}32({})", ir::op_name(k), x);
  }
}

std::string binary(OpKind k, DType d, const std::string& a, const std::string& b) {
  const bool real = ir::is_floating(d);
  const char* t = register_type(d);
  const auto arithmetic = [&](char op) {
    return real ? fmt::format("{} {} {}", a, op, b)
                : fmt::format("({0})(({1}){2} {3} ({1}){4})", t, unsigned_of(d), a, op, b);
  };
  const auto call = [&](const char* name) { return fmt::format("{}_{}({}, {})", name, t, a, b); };
  switch (k) {
    case OpKind::add: return arithmetic('+');
    case OpKind::sub: return arithmetic('-');
    case OpKind::mul: return arithmetic('*');
    case OpKind::div: return real ? arithmetic('/') : call("div");
    case OpKind::rem: return call("rem");
    case OpKind::min:
      return real ? fmt::format("min{}({}, {})", width(d), a, b)
                  : fmt::format("({0} < {1} ? {0} : {1})", a, b);
    case OpKind::max:
      return real ? fmt::format("max{}({}, {})", width(d), a, b)
                  : fmt::format("({0} > {1} ? {0} : {1})", a, b);
    case OpKind::bit_and: return fmt::format("({})({} & {})", t, a, b);
    case OpKind::bit_or: return fmt::format("({})({} | {})", t, a, b);
    case OpKind::bit_xor: return fmt::format("({})({} ^ {})", t, a, b);
    case OpKind::shl: return call("shl");
    case OpKind::shr: return call("shr");
    case OpKind::eq: return fmt::format("(u8)({} == {})", a, b);
    case OpKind::ne: return fmt::format("(u8)({} != {})", a, b);
    case OpKind::lt: return fmt::format("(u8)({} < {})", a, b);
    case OpKind::le: return fmt::format("(u8)({} <= {})", a, b);
    case OpKind::gt: return fmt::format("(u8)({} > {})", a, b);
    case OpKind::ge: return fmt::format("(u8)({} >= {})", a, b);
    default: OSTRO_CHECK(false, "no C for {}", ir::op_name(k)); return "";
  }
}

}  // namespace

const char* register_type(DType d) {
  switch (d) {
    case DType::f32:
    case DType::bf16: return "float";
    case DType::f64: return "double";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::u32: return "u32";
    case DType::i8: return "i8";
    case DType::boolean: return "u8";
  }
  return "?";
}

const char* memory_type(DType d) { return d == DType::bf16 ? "u16" : register_type(d); }

std::string load_expr(DType d, const std::string& element) {
  return d == DType::bf16 ? fmt::format("ld_bf16({})", element) : element;
}

std::string store_expr(DType d, const std::string& value) {
  return d == DType::bf16 ? fmt::format("st_bf16({})", value) : value;
}

std::string literal_expr(DType d, uint64_t word) {
  switch (d) {
    case DType::f32: return fmt::format("lit32(0x{:08x}u)", word);
    case DType::bf16: return fmt::format("lit32(0x{:08x}u)", word << 16);
    case DType::f64: return fmt::format("lit64(0x{:016x}u)", word);
    default: return fmt::format("({})0x{:x}u", register_type(d), word);
  }
}

std::string op_expr(OpKind k, const std::vector<DType>& from, DType to, const std::vector<std::string>& args,
                    const Dialect& dialect) {
  switch (k) {
    case OpKind::cast:
    case OpKind::use: return from[0] == to ? args[0] : cast_expr(from[0], to, args[0]);
    case OpKind::logical_not: return fmt::format("(u8)({} == 0)", args[0]);
    case OpKind::is_finite: return fmt::format("finite{}({})", width(from[0]), args[0]);
    case OpKind::select: {
      const std::string chosen = ir::is_floating(to)
                                     ? fmt::format("pick{}({}, {}, {})", width(to), args[0], args[1], args[2])
                                     : fmt::format("({} != 0 ? {} : {})", args[0], args[1], args[2]);
      return to == DType::bf16 ? fmt::format("round_bf16({})", chosen) : chosen;
    }
    default: break;
  }
  if (args.size() == 1) return unary(k, is_f32(from[0]) ? DType::f32 : from[0], args[0], dialect);
  return binary(k, is_f32(from[0]) ? DType::f32 : from[0], args[0], args[1]);
}

}  // namespace ostro::compile
