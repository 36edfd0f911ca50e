// Elementwise ops: each result element from the same element of each operand, one IEEE rounding per operator.
#include <cmath>

#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/numerics/functions.h"

namespace ostro::interp {
namespace {

template <typename T>
using Unary = T (*)(T);
template <typename T>
using Binary = T (*)(T, T);

Unary<float> unary_f32(OpKind kind) {
  switch (kind) {
    case OpKind::neg: return [](float x) { return -x; };
    case OpKind::abs: return [](float x) { return std::fabs(x); };
    case OpKind::exp: return numerics::exp_f32;
    case OpKind::log: return numerics::log_f32;
    case OpKind::log2: return numerics::log2_f32;
    case OpKind::log1p: return numerics::log1p_f32;
    case OpKind::tanh: return numerics::tanh_f32;
    case OpKind::sin: return numerics::sin_f32;
    case OpKind::cos: return numerics::cos_f32;
    case OpKind::erf: return numerics::erf_f32;
    case OpKind::erfinv: return numerics::erfinv_f32;
    case OpKind::sqrt: return numerics::sqrt_f32;
    case OpKind::rsqrt: return numerics::rsqrt_f32;
    case OpKind::sigmoid: return numerics::sigmoid_f32;
    case OpKind::floor: return numerics::floor_f32;
    default: return nullptr;
  }
}

Unary<double> unary_f64(OpKind kind) {
  switch (kind) {
    case OpKind::neg: return [](double x) { return -x; };
    case OpKind::abs: return [](double x) { return std::fabs(x); };
    case OpKind::sqrt: return numerics::sqrt_f64;
    default: return nullptr;
  }
}

// Integers wrap: arithmetic is done on the unsigned type of the same width.
template <typename T>
Unary<T> unary_int(OpKind kind) {
  using U = std::make_unsigned_t<T>;
  switch (kind) {
    case OpKind::neg: return [](T x) { return static_cast<T>(U{0} - static_cast<U>(x)); };
    case OpKind::abs: return [](T x) { return x < T{0} ? static_cast<T>(U{0} - static_cast<U>(x)) : x; };
    default: return nullptr;
  }
}

template <typename T>
Unary<T> unary(OpKind kind) {
  if constexpr (std::is_same_v<T, float>)
    return unary_f32(kind);
  else if constexpr (std::is_same_v<T, double>)
    return unary_f64(kind);
  else
    return unary_int<T>(kind);
}

template <typename T>
Binary<T> binary_float(OpKind kind) {
  constexpr bool kSingle = std::is_same_v<T, float>;
  switch (kind) {
    case OpKind::add: return [](T a, T b) { return a + b; };
    case OpKind::sub: return [](T a, T b) { return a - b; };
    case OpKind::mul: return [](T a, T b) { return a * b; };
    case OpKind::div: return [](T a, T b) { return a / b; };
    case OpKind::min:
      if constexpr (kSingle)
        return numerics::min_f32;
      else
        return numerics::min_f64;
    case OpKind::max:
      if constexpr (kSingle)
        return numerics::max_f32;
      else
        return numerics::max_f64;
    default: return nullptr;
  }
}

// Truncating; x / 0 = 0, and the one quotient that does not fit wraps.
template <typename T>
T divide(T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return unary_int<T>(OpKind::neg)(a);
  return a / b;
}

template <typename T>
T remainder(T a, T b) {
  if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
  return a % b;
}

// A count outside 0 .. width - 1 (a negative one too) shifts everything out.
template <typename T>
bool shifts_out(T count) {
  return static_cast<std::make_unsigned_t<T>>(count) >= 8 * sizeof(T);
}

template <typename T>
Binary<T> binary_int(OpKind kind) {
  using U = std::make_unsigned_t<T>;
  switch (kind) {
    case OpKind::add: return [](T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); };
    case OpKind::sub: return [](T a, T b) { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); };
    case OpKind::mul: return [](T a, T b) { return static_cast<T>(static_cast<U>(a) * static_cast<U>(b)); };
    case OpKind::div: return divide<T>;
    case OpKind::rem: return remainder<T>;
    case OpKind::min: return [](T a, T b) { return a < b ? a : b; };
    case OpKind::max: return [](T a, T b) { return a < b ? b : a; };
    case OpKind::bit_and: return [](T a, T b) { return static_cast<T>(a & b); };
    case OpKind::bit_or: return [](T a, T b) { return static_cast<T>(a | b); };
    case OpKind::bit_xor: return [](T a, T b) { return static_cast<T>(a ^ b); };
    case OpKind::shl:
      return [](T a, T b) { return shifts_out(b) ? T{0} : static_cast<T>(static_cast<U>(a) << b); };
    case OpKind::shr:
      return [](T a, T b) {
        if (shifts_out(b)) return static_cast<T>(a < T{0} ? T(-1) : T(0));
        return static_cast<T>(a >> b);
      };
    default: return nullptr;
  }
}

template <typename T>
Binary<T> binary(OpKind kind) {
  if constexpr (std::is_floating_point_v<T>)
    return binary_float<T>(kind);
  else
    return binary_int<T>(kind);
}

template <typename T>
bool compare(OpKind kind, T a, T b) {
  switch (kind) {
    case OpKind::eq: return a == b;
    case OpKind::ne: return a != b;
    case OpKind::lt: return a < b;
    case OpKind::le: return a <= b;
    case OpKind::gt: return a > b;
    default: return a >= b;
  }
}

}  // namespace

Result<Buffers> run_unary(const Call& call) {
  return with_type(call.out[0].dtype, [&]<typename T>() -> Buffers {
    const Unary<T> f = unary<T>(call.op.kind);
    OSTRO_CHECK(f != nullptr, "{} of {}", ir::op_name(call.op.kind), call.shape(0).str());
    std::vector<T> x = elements<T>(call.in[0]);
    for (T& v : x) v = f(v);
    return {make_buffer(call.out[0], x)};
  });
}

Result<Buffers> run_binary(const Call& call) {
  return with_type(call.out[0].dtype, [&]<typename T>() -> Buffers {
    const Binary<T> f = binary<T>(call.op.kind);
    OSTRO_CHECK(f != nullptr, "{} of {}", ir::op_name(call.op.kind), call.shape(0).str());
    std::vector<T> a = elements<T>(call.in[0]);
    const std::vector<T> b = elements<T>(call.in[1]);
    for (size_t i = 0; i < a.size(); ++i) a[i] = f(a[i], b[i]);
    return {make_buffer(call.out[0], a)};
  });
}

Result<Buffers> run_compare(const Call& call) {
  return with_type(call.shape(0).dtype, [&]<typename T>() -> Buffers {
    const std::vector<T> a = elements<T>(call.in[0]), b = elements<T>(call.in[1]);
    std::vector<uint8_t> out(a.size());
    for (size_t i = 0; i < a.size(); ++i) out[i] = compare(call.op.kind, a[i], b[i]) ? 1 : 0;
    return {make_buffer(call.out[0], out)};
  });
}

Result<Buffers> run_logical_not(const Call& call) {
  std::vector<uint8_t> x = elements<uint8_t>(call.in[0]);
  for (uint8_t& v : x) v = v == 0 ? 1 : 0;
  return Buffers{make_buffer(call.out[0], x)};
}

Result<Buffers> run_is_finite(const Call& call) {
  return with_type(call.shape(0).dtype, [&]<typename T>() -> Buffers {
    const std::vector<T> x = elements<T>(call.in[0]);
    std::vector<uint8_t> out(x.size());
    for (size_t i = 0; i < x.size(); ++i) out[i] = std::isfinite(static_cast<double>(x[i])) ? 1 : 0;
    return {make_buffer(call.out[0], out)};
  });
}

Result<Buffers> run_select(const Call& call) {
  return with_type(call.out[0].dtype, [&]<typename T>() -> Buffers {
    const std::vector<uint8_t> condition = elements<uint8_t>(call.in[0]);
    std::vector<T> a = elements<T>(call.in[1]);
    const std::vector<T> b = elements<T>(call.in[2]);
    for (size_t i = 0; i < a.size(); ++i)
      if (condition[i] == 0) a[i] = b[i];
    return {make_buffer(call.out[0], a)};
  });
}

}  // namespace ostro::interp
