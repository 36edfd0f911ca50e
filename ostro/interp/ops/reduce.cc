// Reductions: sums (numerics.md N4, N5, cut by N8), extrema, the tree over an axis of partials.
#include <limits>

#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/interp/core/leaves.h"
#include "ostro/interp/core/order.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/sums.h"

namespace ostro::interp {
namespace {

// The positions of a reduction's elements: x[kept[i] + reduced[r]] is element r of result i.
struct Rows {
  std::vector<Axis> axes;  // reduced, in the operand's order
  std::vector<int64_t> kept, reduced;
};

Rows rows_of(const Call& call, const std::vector<std::string>& names) {
  const Shape& x = call.shape(0);
  const std::vector<Axis> axes = axes_in(x, names);
  return {axes, offsets(axes_not_in(x, names), x), offsets(axes, x)};
}

// Sum of T elements accumulated in Acc.
template <typename T, typename Acc>
Buffer sum_float(const Call& call) {
  const bool striped = call.op.attrs.str("order", "striped") == "striped";
  const Rows rows = rows_of(call, call.op.attrs.strs("axes"));
  const ContractionLeaves leaves = cut(rows.axes, call.leaves);
  const std::vector<T> x = elements<T>(call.in[0]);
  std::vector<Acc> result;
  for (int64_t first : rows.kept) {
    std::vector<Acc> partials;
    for (const std::vector<int64_t>& leaf : leaves.indices) {
      const auto n = static_cast<int64_t>(leaf.size());
      auto at = [&](int64_t r) { return x[first + rows.reduced[leaf[r]]]; };
      partials.push_back(striped ? numerics::striped_sum<Acc>(n, at) : numerics::serial_sum<Acc>(n, at));
    }
    result.push_back(join(partials, leaves.counts));
  }
  return make_buffer(call.out[0], result);
}

// Wraps, so that order and leaves do not matter.
template <typename T>
Buffer sum_integer(const Call& call) {
  using U = std::make_unsigned_t<T>;
  const Rows rows = rows_of(call, call.op.attrs.strs("axes"));
  const std::vector<T> x = elements<T>(call.in[0]);
  std::vector<T> result;
  for (int64_t first : rows.kept) {
    U sum = 0;
    for (int64_t r : rows.reduced) sum += static_cast<U>(x[first + r]);
    result.push_back(static_cast<T>(sum));
  }
  return make_buffer(call.out[0], result);
}

float larger(float a, float b) { return numerics::max_f32(a, b); }
float smaller(float a, float b) { return numerics::min_f32(a, b); }
double larger(double a, double b) { return numerics::max_f64(a, b); }
double smaller(double a, double b) { return numerics::min_f64(a, b); }
template <typename T>
T larger(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
T smaller(T a, T b) {
  return b < a ? b : a;
}

// The end of the type's range; -inf or +inf for floats.
template <typename T>
T extremum_of_nothing(bool max) {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::has_infinity)
    return max ? -Limits::infinity() : Limits::infinity();
  else
    return max ? Limits::min() : Limits::max();
}

}  // namespace

Result<Buffers> run_sum(const Call& call) {
  const DType from = call.shape(0).dtype;
  if (from == DType::i32) return Buffers{sum_integer<int32_t>(call)};
  if (from == DType::i64) return Buffers{sum_integer<int64_t>(call)};
  if (from == DType::u32) return Buffers{sum_integer<uint32_t>(call)};
  if (from == DType::f64) return Buffers{sum_float<double, double>(call)};
  if (call.out[0].dtype == DType::f64) return Buffers{sum_float<float, double>(call)};
  return Buffers{sum_float<float, float>(call)};
}

Result<Buffers> run_extremum(const Call& call) {
  const bool max = call.op.kind == OpKind::reduce_max;
  const Rows rows = rows_of(call, call.op.attrs.strs("axes"));
  return with_type(call.out[0].dtype, [&]<typename T>() -> Buffers {
    const std::vector<T> x = elements<T>(call.in[0]);
    std::vector<T> result;
    for (int64_t first : rows.kept) {
      T best = extremum_of_nothing<T>(max);
      for (int64_t r : rows.reduced) best = max ? larger(best, x[first + r]) : smaller(best, x[first + r]);
      result.push_back(best);
    }
    return {make_buffer(call.out[0], result)};
  });
}

Result<Buffers> run_argmax(const Call& call) {
  const Rows rows = rows_of(call, {call.op.attrs.str("axis")});
  return with_type(call.shape(0).dtype, [&]<typename T>() -> Buffers {
    const std::vector<T> x = elements<T>(call.in[0]);
    std::vector<int32_t> result;
    for (int64_t first : rows.kept) {
      size_t best = 0;
      for (size_t r = 1; r < rows.reduced.size(); ++r)
        if (is_below(x[first + rows.reduced[best]], x[first + rows.reduced[r]])) best = r;
      result.push_back(static_cast<int32_t>(best));
    }
    return {make_buffer(call.out[0], result)};
  });
}

Result<Buffers> run_tree_sum(const Call& call) {
  const Rows rows = rows_of(call, call.op.attrs.strs("axes"));
  return with_type(call.out[0].dtype, [&]<typename T>() -> Buffers {
    const std::vector<T> x = elements<T>(call.in[0]);
    std::vector<T> result;
    for (int64_t first : rows.kept) {
      std::vector<T> row;
      for (int64_t r : rows.reduced) row.push_back(x[first + r]);
      result.push_back(numerics::tree_sum(std::span<const T>(row)));
    }
    return {make_buffer(call.out[0], result)};
  });
}

}  // namespace ostro::interp
