#include "ostro/fleet/processes/recovery.h"

#include <algorithm>
#include <map>

#include "ostro/base/check.h"

namespace ostro::fleet {
namespace {

bool overlap(const Region& a, const Region& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (std::min(a[i].second, b[i].second) <= std::max(a[i].first, b[i].first)) return false;
  return true;
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

// Workers of whom several owned the same cells share an entry, and so do the holders of copies.
std::vector<OldCells> old_cells(size_t k, const std::vector<Brought>& brought, const Recovery& recovery,
                                const StateLayout& before) {
  std::vector<OldCells> out;
  std::map<Region, size_t> at;
  std::vector<size_t> of_rank;
  for (int64_t old = 0; old < before.mesh.size(); ++old) {
    const auto [known, is_new] = at.emplace(before.box(k, old), out.size());
    if (is_new) out.push_back({known->first, {}});
    of_rank.push_back(known->second);
  }
  for (const bool copy : {false, true})
    for (size_t i = 0; i < brought.size(); ++i) {
      if (!recovery.brings[i]) continue;
      const int64_t of = copy ? brought[i].mirror_of : brought[i].rank;
      if (of < 0 || (copy && !before.owned_once[k])) continue;
      out[of_rank[static_cast<size_t>(of)]].holders.push_back({static_cast<int64_t>(i), copy, of});
    }
  return out;
}

std::vector<Piece> pieces_for(size_t k, int64_t to, std::optional<int64_t> mirror_of,
                              const std::vector<OldCells>& cells, const StateLayout& now) {
  std::vector<Piece> out;
  std::vector<std::pair<bool, Region>> wanted{{false, now.box(k, to)}};
  if (mirror_of && now.owned_once[k]) wanted.emplace_back(true, now.box(k, *mirror_of));
  for (const OldCells& old : cells)
    for (const auto& [copy, target] : wanted) {
      if (!overlap(old.box, target)) continue;
      OSTRO_CHECK(!old.holders.empty(), "cells of array {} are lost", k);
      // What this worker has itself need not be sent; the others share the work.
      auto source = std::find_if(old.holders.begin(), old.holders.end(),
                                 [&](const OldCells::Holder& h) { return h.rank == to; });
      if (source == old.holders.end())
        source = old.holders.begin() + to % static_cast<int64_t>(old.holders.size());
      out.push_back({source->rank, source->copy, source->of, copy, common(old.box, target)});
    }
  return out;
}

}  // namespace ostro::fleet
