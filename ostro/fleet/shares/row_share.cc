#include "ostro/fleet/shares/row_share.h"

#include <algorithm>

namespace ostro::fleet {

bool CheckedLeaf::may_run(int64_t place) const {
  return place == owner || place == by.second ||
         std::find(by.deciders.begin(), by.deciders.end(), place) != by.deciders.end();
}

std::vector<CheckedLeaf> checked_leaves(const CheckDraw& draw, int64_t step, int64_t leaves, int64_t workers,
                                        const LeafShares& shares) {
  std::vector<CheckedLeaf> out;
  if (!draw.on()) return out;
  for (int64_t place = 0; place < workers; ++place) {
    const train::LeafRange range = shares.range(leaves, workers, place);
    for (int64_t leaf = range.begin; leaf < range.end; ++leaf)
      if (draw.leaf(step, leaf)) out.push_back({leaf, place, checkers_of(draw, step, leaf, place, workers)});
  }
  return out;
}

train::LeafRange RowShare::dealt(int64_t leaves) const {
  if (count == 0) return {0, leaves};
  return {train::leaf_range(leaves, workers, first).begin,
          train::leaf_range(leaves, workers, first + count - 1).end};
}

std::vector<int64_t> RowShare::own_leaves(int64_t leaves) const {
  std::vector<int64_t> out;
  const train::LeafRange range = dealt_out ? dealt(leaves) : shares.range(leaves, workers, place);
  const int64_t step = !dealt_out ? 1 : count > 0 ? count : workers;
  for (int64_t leaf = range.begin + (dealt_out ? place - first : 0); leaf < range.end; leaf += step)
    out.push_back(leaf);
  return out;
}

std::vector<std::pair<int64_t, int64_t>> RowShare::of(int64_t batch_size, int64_t step) const {
  const std::vector<int64_t> own = own_leaves(batch_size / rows);
  std::vector<std::pair<int64_t, int64_t>> out;
  const auto add = [&](int64_t first, int64_t last) { out.emplace_back(first * rows, (last + 1) * rows); };
  if (dealt_out)
    for (const int64_t leaf : own) add(leaf, leaf);
  if (dealt_out) return out;
  if (!own.empty()) add(own.front(), own.back());
  for (const CheckedLeaf& leaf : checked_leaves(check, step, batch_size / rows, workers, shares))
    if (leaf.owner != place && leaf.may_run(place)) add(leaf.leaf, leaf.leaf);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace ostro::fleet
