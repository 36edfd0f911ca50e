#include "ostro/fleet/processes/recovery.h"

#include <algorithm>

namespace ostro::fleet {
namespace {

// A worker that has the elements of one cell of the old layout.
struct Holder {
  int64_t rank;  // now
  bool copy;
  int64_t of;  // whose cells it holds, in the old layout
};

std::vector<Holder> holders_of_box(size_t k, const Region& box, const std::vector<Brought>& brought,
                                   const Recovery& recovery, const StateLayout& before) {
  std::vector<Holder> out;
  for (const bool copy : {false, true})
    for (size_t i = 0; i < brought.size(); ++i) {
      if (!recovery.brings[i]) continue;
      const int64_t of = copy ? brought[i].mirror_of : brought[i].rank;
      if (of < 0 || (copy && !before.owned_once[k])) continue;
      if (before.box(k, of) == box) out.push_back({static_cast<int64_t>(i), copy, of});
    }
  return out;
}

}  // namespace

Recovery plan_recovery(const std::vector<Brought>& brought) {
  Recovery out;
  for (const Brought& b : brought)
    if (b.epoch > out.epoch) out.epoch = b.epoch, out.size = b.size;
  out.brings.assign(brought.size(), false);
  out.behind.assign(brought.size(), false);
  if (out.epoch == 0) return out;
  for (const Brought& b : brought)
    if (b.epoch == out.epoch) out.step = std::max(out.step, b.step);
  for (size_t i = 0; i < brought.size(); ++i) {
    const Brought& b = brought[i];
    if (b.epoch != out.epoch) continue;
    if (b.step == out.step) {
      out.brings[i] = true;
      out.measured = b.measured;
    } else if (b.step == out.step - 1 && b.can_finish != 0) {
      out.brings[i] = out.behind[i] = true;
    }
  }
  return out;
}

void leave_out_copies(std::vector<Brought>& brought, const Recovery& recovery) {
  std::vector<int64_t> owners;
  for (size_t i = 0; i < brought.size(); ++i)
    if (recovery.brings[i]) owners.push_back(brought[i].rank);
  for (Brought& b : brought)
    if (std::find(owners.begin(), owners.end(), b.mirror_of) != owners.end()) b.mirror_of = -1;
}

std::optional<std::vector<Piece>> pieces_for(size_t k, int64_t to, std::optional<int64_t> mirror_of,
                                             const std::vector<Brought>& brought, const Recovery& recovery,
                                             const StateLayout& before, const StateLayout& now) {
  std::vector<Piece> out;
  std::vector<std::pair<bool, Region>> wanted{{false, now.box(k, to)}};
  if (mirror_of && now.owned_once[k]) wanted.emplace_back(true, now.box(k, *mirror_of));
  std::vector<Region> seen;
  for (int64_t old = 0; old < before.mesh.size(); ++old) {
    const Region box = before.box(k, old);
    if (std::find(seen.begin(), seen.end(), box) != seen.end()) continue;
    seen.push_back(box);
    const std::vector<Holder> holders = holders_of_box(k, box, brought, recovery, before);
    for (const auto& [copy, target] : wanted) {
      const Region region = common(box, target);
      if (is_empty(region)) continue;
      if (holders.empty()) return std::nullopt;
      // What this worker has itself need not be sent; the others share the work.
      auto source =
          std::find_if(holders.begin(), holders.end(), [&](const Holder& h) { return h.rank == to; });
      if (source == holders.end()) source = holders.begin() + to % static_cast<int64_t>(holders.size());
      out.push_back({source->rank, source->copy, source->of, copy, region});
    }
  }
  return out;
}

}  // namespace ostro::fleet
