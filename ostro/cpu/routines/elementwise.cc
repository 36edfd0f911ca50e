// Elementwise ops one at a time, without generated code: operands of any strides, dense results.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ostro/cpu/routines/elements.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/numerics/functions.h"

namespace ostro::cpu {
namespace {

using ir::DType;
using ir::OpKind;

constexpr int64_t kRun = 256;      // elements at a time
constexpr int64_t kGrain = 16384;  // elements worth a thread

// Calls f(result position, n, position of the run's first element in each operand, strides) for runs along
// the last axis that cover [begin, end) of the row-major result; all in elements.
template <typename F>
void for_runs(const OpCall& call, int64_t begin, int64_t end, F&& f) {
  const ir::Shape& shape = call.out[0].shape();
  const size_t rank = shape.axes.size(), operands = call.in.size();
  bool flat = rank == 0;
  if (!flat) {
    flat = true;
    for (const Array& a : call.in) flat = flat && a.view->dense();
  }
  const int64_t inner = flat ? shape.count() : shape.axes[rank - 1].size;
  int64_t at[3] = {}, stride[3] = {};
  for (size_t k = 0; k < operands; ++k) stride[k] = flat ? 1 : call.in[k].view->strides[rank - 1];
  while (begin < end) {
    const int64_t column = begin % inner;
    int64_t row = begin / inner;
    for (size_t k = 0; k < operands; ++k) at[k] = column * stride[k];
    if (!flat) {
      for (size_t axis = rank - 1; axis-- > 0;) {
        const int64_t index = row % shape.axes[axis].size;
        row /= shape.axes[axis].size;
        for (size_t k = 0; k < operands; ++k) at[k] += index * call.in[k].view->strides[axis];
      }
    }
    const int64_t stop = std::min(end, begin - column + inner);
    for (int64_t i = begin; i < stop; i += kRun) {
      const int64_t n = std::min(kRun, stop - i);
      f(i, n, at, stride);
      for (size_t k = 0; k < operands; ++k) at[k] += n * stride[k];
    }
    begin = stop;
  }
}

template <typename T>
void load(const Array& a, int64_t at, int64_t stride, int64_t n, T* out) {
  load_run(a.data + at * ir::dtype_size(a.dtype()), a.dtype(), stride, n, out);
}

template <typename T>
void store(const Array& a, int64_t at, int64_t n, const T* in) {
  store_run(a.data + at * ir::dtype_size(a.dtype()), a.dtype(), n, in);
}

template <typename F>
Status parallel_runs(const OpCall& call, F f) {
  call.pool.parallel_for(
      call.out[0].count(), [&](int64_t begin, int64_t end) { for_runs(call, begin, end, f); }, kGrain);
  return Status();
}

template <typename In, typename Out, typename F>
Status map1(const OpCall& call, F f) {
  return parallel_runs(call, [&](int64_t i, int64_t n, const int64_t* at, const int64_t* stride) {
    In x[kRun];
    Out y[kRun];
    load(call.in[0], at[0], stride[0], n, x);
    for (int64_t j = 0; j < n; ++j) y[j] = f(x[j]);
    store(call.out[0], i, n, y);
  });
}

template <typename In, typename Out, typename F>
Status map2(const OpCall& call, F f) {
  return parallel_runs(call, [&](int64_t i, int64_t n, const int64_t* at, const int64_t* stride) {
    In x[kRun], z[kRun];
    Out y[kRun];
    load(call.in[0], at[0], stride[0], n, x);
    load(call.in[1], at[1], stride[1], n, z);
    for (int64_t j = 0; j < n; ++j) y[j] = f(x[j], z[j]);
    store(call.out[0], i, n, y);
  });
}

Status missing(const OpCall& call) {
  return unsupported(fmt::format("{} of {}", ir::op_name(call.kind), call.in[0].shape().str()));
}

Status unary_f32(const OpCall& call) {
  const auto map = [&](auto f) { return map1<float, float>(call, f); };
  switch (call.kind) {
    case OpKind::neg: return map([](float x) { return -x; });
    case OpKind::abs: return map([](float x) { return __builtin_fabsf(x); });
    case OpKind::exp: return map(numerics::exp_f32);
    case OpKind::log: return map(numerics::log_f32);
    case OpKind::log2: return map(numerics::log2_f32);
    case OpKind::log1p: return map(numerics::log1p_f32);
    case OpKind::tanh: return map(numerics::tanh_f32);
    case OpKind::sin: return map(numerics::sin_f32);
    case OpKind::cos: return map(numerics::cos_f32);
    case OpKind::erf: return map(numerics::erf_f32);
    case OpKind::erfinv: return map(numerics::erfinv_f32);
    case OpKind::sqrt: return map([](float x) { return numerics::sqrt_f32(x); });
    case OpKind::rsqrt: return map([](float x) { return numerics::rsqrt_f32(x); });
    case OpKind::sigmoid: return map(numerics::sigmoid_f32);
    case OpKind::floor: return map([](float x) { return std::floor(x); });
    default: return missing(call);
  }
}

Status unary_f64(const OpCall& call) {
  const auto map = [&](auto f) { return map1<double, double>(call, f); };
  switch (call.kind) {
    case OpKind::neg: return map([](double x) { return -x; });
    case OpKind::abs: return map([](double x) { return __builtin_fabs(x); });
    case OpKind::sqrt: return map([](double x) { return numerics::sqrt_f64(x); });
    default: return missing(call);
  }
}

template <typename T>
Status unary_int(const OpCall& call) {
  using U = std::make_unsigned_t<T>;
  const auto negate = [](T x) { return static_cast<T>(U{0} - static_cast<U>(x)); };
  if (call.kind == OpKind::neg) return map1<T, T>(call, negate);
  if (call.kind == OpKind::abs) return map1<T, T>(call, [&](T x) { return x < T{0} ? negate(x) : x; });
  return missing(call);
}

template <typename T>
Status binary_float(const OpCall& call) {
  const auto map = [&](auto f) { return map2<T, T>(call, f); };
  switch (call.kind) {
    case OpKind::add: return map([](T a, T b) { return a + b; });
    case OpKind::sub: return map([](T a, T b) { return a - b; });
    case OpKind::mul: return map([](T a, T b) { return a * b; });
    case OpKind::div: return map([](T a, T b) { return a / b; });
    case OpKind::min:
      if constexpr (std::is_same_v<T, float>)
        return map(numerics::min_f32);
      else
        return map(numerics::min_f64);
    case OpKind::max:
      if constexpr (std::is_same_v<T, float>)
        return map(numerics::max_f32);
      else
        return map(numerics::max_f64);
    default: return missing(call);
  }
}

template <typename T>
Status binary_int(const OpCall& call) {
  using U = std::make_unsigned_t<T>;
  const auto map = [&](auto f) { return map2<T, T>(call, f); };
  constexpr U kBits = 8 * sizeof(T);
  switch (call.kind) {
    case OpKind::add:
      return map([](T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); });
    case OpKind::sub:
      return map([](T a, T b) { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); });
    case OpKind::mul:
      return map([](T a, T b) { return static_cast<T>(static_cast<U>(a) * static_cast<U>(b)); });
    case OpKind::div:
      return map([](T a, T b) {
        if (b == 0) return T{0};
        if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(U{0} - static_cast<U>(a));
        return static_cast<T>(a / b);
      });
    case OpKind::rem:
      return map([](T a, T b) {
        if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return T{0};
        return static_cast<T>(a % b);
      });
    case OpKind::min: return map([](T a, T b) { return a < b ? a : b; });
    case OpKind::max: return map([](T a, T b) { return a < b ? b : a; });
    case OpKind::bit_and: return map([](T a, T b) { return static_cast<T>(a & b); });
    case OpKind::bit_or: return map([](T a, T b) { return static_cast<T>(a | b); });
    case OpKind::bit_xor: return map([](T a, T b) { return static_cast<T>(a ^ b); });
    case OpKind::shl:
      return map([](T a, T b) {
        return static_cast<U>(b) >= kBits ? T{0} : static_cast<T>(static_cast<U>(a) << b);
      });
    case OpKind::shr:
      return map([](T a, T b) {
        if (static_cast<U>(b) >= kBits) return a < T{0} ? static_cast<T>(-1) : T{0};
        return static_cast<T>(a >> b);
      });
    default: return missing(call);
  }
}

template <typename T>
Status compare(const OpCall& call) {
  const auto map = [&](auto f) { return map2<T, uint8_t>(call, f); };
  switch (call.kind) {
    case OpKind::eq: return map([](T a, T b) { return static_cast<uint8_t>(a == b); });
    case OpKind::ne: return map([](T a, T b) { return static_cast<uint8_t>(a != b); });
    case OpKind::lt: return map([](T a, T b) { return static_cast<uint8_t>(a < b); });
    case OpKind::le: return map([](T a, T b) { return static_cast<uint8_t>(a <= b); });
    case OpKind::gt: return map([](T a, T b) { return static_cast<uint8_t>(a > b); });
    default: return map([](T a, T b) { return static_cast<uint8_t>(a >= b); });
  }
}

template <typename T>
Status select(const OpCall& call) {
  return parallel_runs(call, [&](int64_t i, int64_t n, const int64_t* at, const int64_t* stride) {
    uint8_t condition[kRun];
    T x[kRun], y[kRun];
    load(call.in[0], at[0], stride[0], n, condition);
    load(call.in[1], at[1], stride[1], n, x);
    load(call.in[2], at[2], stride[2], n, y);
    for (int64_t j = 0; j < n; ++j) x[j] = condition[j] != 0 ? x[j] : y[j];
    store(call.out[0], i, n, x);
  });
}

template <typename Int>
Int saturate(double x) {
  if (x != x) return 0;
  if (x <= static_cast<double>(std::numeric_limits<Int>::min())) return std::numeric_limits<Int>::min();
  if (x >= static_cast<double>(std::numeric_limits<Int>::max())) return std::numeric_limits<Int>::max();
  return static_cast<Int>(x);
}

Status cast(const OpCall& call) {
  const DType to = call.out[0].dtype();
  return with_element_type(call.in[0].dtype(), [&](auto from_tag) {
    using From = decltype(from_tag);
    if (to == DType::boolean)
      return map1<From, uint8_t>(call, [](From x) { return static_cast<uint8_t>(x != From{0}); });
    return with_element_type(to, [&](auto to_tag) {
      using To = decltype(to_tag);
      return map1<From, To>(call, [](From x) {
        if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
          return saturate<To>(static_cast<double>(x));
        else
          return static_cast<To>(x);
      });
    });
  });
}

}  // namespace

Status run_elementwise(const OpCall& call) {
  const OpKind k = call.kind;
  if (k == OpKind::cast || k == OpKind::use) return cast(call);
  if (k == OpKind::logical_not)
    return map1<uint8_t, uint8_t>(call, [](uint8_t x) { return static_cast<uint8_t>(x == 0); });
  if (k == OpKind::is_finite) {
    if (call.in[0].dtype() == DType::f64)
      return map1<double, uint8_t>(call, [](double x) { return static_cast<uint8_t>(std::isfinite(x)); });
    return map1<float, uint8_t>(call, [](float x) { return static_cast<uint8_t>(std::isfinite(x)); });
  }
  if (k >= OpKind::eq && k <= OpKind::ge)
    return with_element_type(call.in[0].dtype(), [&](auto tag) { return compare<decltype(tag)>(call); });
  return with_element_type(call.out[0].dtype(), [&](auto tag) -> Status {
    using T = decltype(tag);
    if (k == OpKind::select) return select<T>(call);
    const bool unary = call.in.size() == 1;
    if constexpr (std::is_same_v<T, float>)
      return unary ? unary_f32(call) : binary_float<T>(call);
    else if constexpr (std::is_same_v<T, double>)
      return unary ? unary_f64(call) : binary_float<T>(call);
    else
      return unary ? unary_int<T>(call) : binary_int<T>(call);
  });
}

}  // namespace ostro::cpu
