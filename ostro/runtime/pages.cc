#include "ostro/runtime/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ostro/ir/program/attention_limits.h"

namespace ostro::runtime {

using ir::kPageSlots;

Status check_places(std::span<const int32_t> place, int64_t places) {
  std::vector<std::pair<int32_t, int64_t>> taken;
  bool ascending = true;
  for (size_t r = 0; r < place.size(); ++r) {
    if (place[r] < 0) continue;
    if (place[r] >= places)
      return invalid_argument(fmt::format("paged_write: row {} has place {}, and the pool has places 0 to {}",
                                          r, place[r], places - 1));
    ascending = ascending && (taken.empty() || taken.back().first < place[r]);
    taken.emplace_back(place[r], static_cast<int64_t>(r));
  }
  if (ascending) return Status();
  std::sort(taken.begin(), taken.end());
  // The first row that repeats a place.
  int64_t again = -1, at = 0;
  for (size_t i = 1; i < taken.size(); ++i)
    if (taken[i].first == taken[i - 1].first && (again < 0 || taken[i].second < again)) {
      again = taken[i].second;
      at = taken[i].first;
    }
  if (again < 0) return Status();
  return invalid_argument(fmt::format("paged_write: row {} has place {}, as a row before it has", again, at));
}

Status check_pages(const RowPages& a) {
  for (int64_t r = 0; r < a.rows; ++r) {
    const int64_t position = a.position[r];
    if (position < 0) continue;
    if (position >= a.entries * kPageSlots)
      return invalid_argument(
          fmt::format("paged_attention: row {} has position {}, and its {} pages hold positions 0 to {}", r,
                      position, a.entries, a.entries * kPageSlots - 1));
    const int64_t first = a.window > 0 ? std::max<int64_t>(0, position - a.window + 1) / kPageSlots : 0;
    for (int64_t p = first; p <= position / kPageSlots; ++p) {
      const int64_t page = a.table[r * a.entries + p];
      if (page < 0 || page >= a.pages)
        return invalid_argument(
            fmt::format("paged_attention: entry {} of row {} names page {}, and the pool has pages 0 to {}",
                        p, r, page, a.pages - 1));
    }
  }
  return Status();
}

PagedHeads paged_heads(const ir::Shape& q, const ir::Shape& keys, const std::string& row,
                       const std::string& head_dim) {
  PagedHeads heads;
  for (const ir::Axis& a : q.axes)
    if (a.name != row && a.name != head_dim) (keys.has(a.name) ? heads.kv : heads.group) = a;
  return heads;
}

}  // namespace ostro::runtime
