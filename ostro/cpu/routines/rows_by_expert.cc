#include "ostro/cpu/routines/rows_by_expert.h"

#include "ostro/cpu/routines/contraction.h"

namespace ostro::cpu {

RowsByExpert sort_by_expert(const Array& expert, int64_t experts, int64_t origin,
                            const std::vector<int64_t>& order) {
  const std::vector<int64_t> at =
      in_order(offsets_over(expert.shape().axes, *expert.view), {order, {}, {}, 0});
  const auto chosen = [&](size_t r) {
    const int64_t e = expert.as<int32_t>()[at[r]] - origin;
    return static_cast<size_t>(e < 0 || e >= experts ? experts : e);
  };
  std::vector<int64_t> next(static_cast<size_t>(experts) + 2, 0);
  for (size_t r = 0; r < at.size(); ++r) ++next[chosen(r) + 1];
  for (size_t e = 1; e < next.size(); ++e) next[e] += next[e - 1];
  RowsByExpert sorted;
  sorted.begin.assign(next.begin(), next.end() - 1);
  sorted.rows.resize(at.size());
  for (size_t r = 0; r < at.size(); ++r)
    sorted.rows[static_cast<size_t>(next[chosen(r)]++)] = order.empty() ? static_cast<int64_t>(r) : order[r];
  return sorted;
}

std::vector<int64_t> picked(const std::vector<int64_t>& offsets, std::span<const int64_t> rows) {
  std::vector<int64_t> out(rows.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = offsets[static_cast<size_t>(rows[i])];
  return out;
}

}  // namespace ostro::cpu
