#include "ostro/cluster/epoch_sizes.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace ostro::cluster {
namespace {

using Places = std::vector<size_t>;

// The members in each slice of an epoch with so many slices, of which the smallest has `smallest`
// candidates; 0: the mesh has no such epoch. Each slice has whole coordinates of replica, all as many.
int64_t members_of_each(const Sizes& sizes, int64_t slices, int64_t smallest) {
  if (sizes.replicas > 0 && sizes.replicas % slices != 0) return 0;
  const int64_t unit = sizes.replicas > 0 ? sizes.multiple / slices : sizes.multiple;
  const int64_t most = std::min(smallest, sizes.most / slices);
  return unit > 0 ? most - most % unit : 0;
}

// Takes `wanted` of the candidates at these places, and adds the places of the others to `out`. `holders`:
// how many of those who are taken hold some cells; who is left out does not count any more.
void leave_out(const std::vector<Candidate>& candidates, const Places& places, size_t wanted,
               std::map<int64_t, int64_t>& holders, Places& out) {
  const auto count = [&](size_t place) {
    const int64_t cells = candidates[place].cells;
    return cells < 0 ? INT64_MAX : holders[cells];
  };
  // The very first member leads the run: of those whose cells others hold, too, it is left out last.
  std::vector<std::tuple<bool, int64_t, size_t>> order;
  for (const size_t place : places) order.emplace_back(place != 0, count(place), place);
  std::sort(order.rbegin(), order.rend());
  size_t left = places.size() - wanted;
  Places last_holders;
  for (const auto& [follows, held, place] : order) {
    if (left == 0) return;
    if (count(place) == 1) {
      last_holders.push_back(place);
      continue;
    }
    if (candidates[place].cells >= 0) --holders[candidates[place].cells];
    out.push_back(place);
    --left;
  }
  out.insert(out.end(), last_holders.begin(), last_holders.begin() + static_cast<std::ptrdiff_t>(left));
}

}  // namespace

int64_t cells_of(const Sizes& sizes, int64_t rank, int64_t size) {
  if (sizes.replicas == 0 || rank < 0 || rank >= size) return -1;
  const int64_t different = sizes.replicas > 0 ? size / sizes.replicas : sizes.multiple;
  return different > 0 ? rank % different : -1;
}

std::vector<size_t> equal_slices(const std::vector<Candidate>& candidates, const Sizes& sizes) {
  std::vector<Places> slices;
  for (size_t place = 0; place < candidates.size(); ++place) {
    const auto slice = static_cast<size_t>(candidates[place].slice);
    if (slice >= slices.size()) slices.resize(slice + 1);
    slices[slice].push_back(place);
  }
  if (sizes.replicas == 0) return {};
  std::stable_sort(slices.begin(), slices.end(),
                   [](const Places& a, const Places& b) { return a.size() > b.size(); });
  int64_t best = 0, each = 0;  // slices, members of each
  for (int64_t count = 1; count <= static_cast<int64_t>(slices.size()); ++count) {
    const auto smallest = static_cast<int64_t>(slices[static_cast<size_t>(count - 1)].size());
    const int64_t members = members_of_each(sizes, count, smallest);
    if (members > 0 && count * members >= best * each) best = count, each = members;
  }
  int64_t unequal = std::min(sizes.most, static_cast<int64_t>(candidates.size()));
  unequal -= unequal % sizes.multiple;
  const int64_t total = best * each;
  if (total == 0 || (sizes.equal_slices ? 2 * total < unequal : total < unequal)) return {};
  std::map<int64_t, int64_t> holders;
  for (size_t s = 0; s < static_cast<size_t>(best); ++s)
    for (const size_t place : slices[s])
      if (candidates[place].cells >= 0) ++holders[candidates[place].cells];
  Places out, taken;
  for (size_t s = 0; s < slices.size(); ++s) {
    if (s < static_cast<size_t>(best))
      leave_out(candidates, slices[s], static_cast<size_t>(each), holders, out);
    else
      out.insert(out.end(), slices[s].begin(), slices[s].end());
  }
  std::sort(out.begin(), out.end());
  for (size_t place = 0, next = 0; place < candidates.size(); ++place) {
    if (next < out.size() && out[next] == place)
      ++next;
    else
      taken.push_back(place);
  }
  return taken;
}

}  // namespace ostro::cluster
