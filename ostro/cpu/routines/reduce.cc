// Reductions one at a time, without generated code: sums (docs/spec/numerics.md N4, N5, cut by N8), extrema,
// argmax, the tree over an axis of partials. Dense operands.
#include <algorithm>
#include <limits>

#include "ostro/cpu/routines/contraction.h"
#include "ostro/cpu/routines/elements.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/cpu/routines/order.h"
#include "ostro/numerics/sums.h"

namespace ostro::cpu {
namespace {

using ir::OpKind;

template <typename T>
T element(const Array& a, int64_t at) {
  if constexpr (std::is_same_v<T, float>)
    if (a.dtype() == ir::DType::bf16) return numerics::to_f32(a.as<numerics::Bf16>()[at]);
  return a.as<T>()[at];
}

struct Rows {
  std::vector<int64_t> kept, reduced;  // element r of result i is x[kept[i] + reduced[r]]
  Contraction contraction;
};

Rows rows_of(const OpCall& call) {
  const compile::View& x = *call.in[0].view;
  const auto names = call.kind == OpKind::argmax ? std::vector<std::string>{call.attrs.str("axis")}
                                                 : call.attrs.strs("axes");
  std::vector<ir::Axis> kept, reduced;
  for (const ir::Axis& a : x.shape.axes)
    (std::find(names.begin(), names.end(), a.name) == names.end() ? kept : reduced).push_back(a);
  Rows rows{offsets_over(kept, x), {}, contraction_of(reduced, call.leaves)};
  rows.reduced = offsets_over(reduced, x);
  if (call.kind == OpKind::sum) rows.reduced = in_order(std::move(rows.reduced), rows.contraction);
  return rows;
}

template <typename F>
void for_rows(const OpCall& call, const Rows& rows, F&& f) {
  const auto n = static_cast<int64_t>(rows.kept.size());
  const auto length = std::max<int64_t>(1, static_cast<int64_t>(rows.reduced.size()));
  call.pool.parallel_for(
      n,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) f(i, rows.kept[static_cast<size_t>(i)]);
      },
      std::max<int64_t>(1, 8192 / length));
}

template <typename T, typename Acc>
void sum_float(const OpCall& call) {
  const bool striped = call.attrs.str("order", "striped") == "striped";
  const Rows rows = rows_of(call);
  const std::vector<int64_t>& ends = rows.contraction.segment_ends;
  for_rows(call, rows, [&](int64_t i, int64_t first) {
    std::vector<Acc> partials;
    int64_t begin = 0;
    for (int64_t end : ends) {
      const auto at = [&](int64_t r) {
        return element<T>(call.in[0], first + rows.reduced[static_cast<size_t>(begin + r)]);
      };
      partials.push_back(striped ? numerics::striped_sum<Acc>(end - begin, at)
                                 : numerics::serial_sum<Acc>(end - begin, at));
      begin = end;
    }
    call.out[0].as<Acc>()[i] = join_leaves(partials, rows.contraction.tree_counts);
  });
}

template <typename T>
void sum_integer(const OpCall& call) {
  using U = std::make_unsigned_t<T>;
  const Rows rows = rows_of(call);
  for_rows(call, rows, [&](int64_t i, int64_t first) {
    U sum = 0;
    for (int64_t r : rows.reduced) sum += static_cast<U>(call.in[0].as<T>()[first + r]);
    call.out[0].as<T>()[i] = static_cast<T>(sum);
  });
}

// The result of a max or min over no elements: the end of the type's range.
template <typename T>
T of_nothing(bool max) {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::has_infinity)
    return max ? -Limits::infinity() : Limits::infinity();
  else
    return max ? Limits::min() : Limits::max();
}

template <typename T>
void extremum(const OpCall& call) {
  const bool max = call.kind == OpKind::reduce_max;
  const Rows rows = rows_of(call);
  for_rows(call, rows, [&](int64_t i, int64_t first) {
    T best = of_nothing<T>(max);
    for (int64_t r : rows.reduced) {
      const T x = element<T>(call.in[0], first + r);
      best = max ? larger(best, x) : smaller(best, x);
    }
    call.out[0].as<T>()[i] = best;
  });
}

template <typename T>
void argmax(const OpCall& call) {
  const Rows rows = rows_of(call);
  for_rows(call, rows, [&](int64_t i, int64_t first) {
    size_t best = 0;
    for (size_t r = 1; r < rows.reduced.size(); ++r)
      if (is_below(element<T>(call.in[0], first + rows.reduced[best]),
                   element<T>(call.in[0], first + rows.reduced[r])))
        best = r;
    call.out[0].as<int32_t>()[i] = static_cast<int32_t>(best);
  });
}

template <typename T>
void tree(const OpCall& call) {
  const Rows rows = rows_of(call);
  for_rows(call, rows, [&](int64_t i, int64_t first) {
    std::vector<T> row;
    for (int64_t r : rows.reduced) row.push_back(call.in[0].as<T>()[first + r]);
    call.out[0].as<T>()[i] = row.empty() ? T{0} : join_leaves(row, {static_cast<int64_t>(row.size())});
  });
}

}  // namespace

Status run_reduction(const OpCall& call) {
  with_element_type(call.in[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    if (call.kind == OpKind::argmax) {
      argmax<T>(call);
    } else if (call.kind == OpKind::sum) {
      if constexpr (!std::is_floating_point_v<T>)
        sum_integer<T>(call);
      else if (call.out[0].dtype() == ir::DType::f64)
        sum_float<T, double>(call);
      else
        sum_float<T, float>(call);
    } else if (call.kind == OpKind::tree_sum) {
      if constexpr (std::is_floating_point_v<T>) tree<T>(call);
    } else {
      extremum<T>(call);
    }
  });
  return Status();
}

}  // namespace ostro::cpu
