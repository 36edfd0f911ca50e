#include "ostro/fleet/processes/leaf_sharing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ostro/base/log.h"

namespace ostro::fleet {
namespace {

constexpr size_t kMostTold = 6;  // workers in a text

// Of the places of workers that run different leaves. With more mesh axes several workers are at a place;
// they compute a leaf together, so it takes as long as the slowest of them says.
std::vector<double> known_by_place(const WorkerPlan& plan, const std::vector<double>& by_rank) {
  const std::vector<int64_t> leaders = plan.leaf_peers(0);
  std::vector<double> out(leaders.size());
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const std::vector<int64_t> peers = plan.leaf_peers(static_cast<int64_t>(rank));
    const auto place = static_cast<size_t>(std::find(peers.begin(), peers.end(), static_cast<int64_t>(rank)) -
                                           peers.begin());
    out[place] = std::max(out[place], by_rank[rank]);
  }
  return out;
}

}  // namespace

Status LeafSharing::before_step(int64_t leaves) {
  const WorkerPlan& plan = crew_.plan();
  if (!plan.options.measured_shares) return Status();
  if (keeper_ == nullptr || epoch_ != crew_.epoch().number) {
    keeper_ =
        std::make_unique<ShareKeeper>(share_keeper(plan, known_by_place(plan, crew_.known_leaf_seconds())));
    epoch_ = crew_.epoch().number;
  }
  const LeafShares before = plan.shares;
  const std::optional<LeafShares> shares = keeper_->next(leaves);
  if (!shares) return Status();
  RETURN_IF_ERROR(send_shares(crew_.group(), shares->counts(leaves, plan.sharers())));
  crew_.set_shares(*shares);
  const std::string text = told(leaves, before);
  log_info(text);
  crew_.membership().shares_changed(text);
  return Status();
}

void LeafSharing::after_step(double seconds) {
  if (keeper_ != nullptr && epoch_ == crew_.epoch().number)
    keeper_->note(crew_.worker().leaf_times().all, seconds);
}

// "leaves are shared out by speed: worker 2 takes 0.160 s a leaf and has 1 of 7 now, 3 before; ..."
std::string LeafSharing::told(int64_t leaves, const LeafShares& before) const {
  const WorkerPlan& plan = crew_.plan();
  const std::vector<int64_t> peers = plan.leaf_peers(0), was = before.counts(leaves, plan.sharers()),
                             now = plan.shares.counts(leaves, plan.sharers());
  const std::vector<double> seconds = keeper_->leaf_seconds();
  std::vector<std::string> parts;
  size_t others = 0;
  for (size_t place = 0; place < peers.size(); ++place) {
    if (was[place] == now[place]) continue;
    if (parts.size() == kMostTold) {
      ++others;
      continue;
    }
    parts.push_back(fmt::format("worker {} takes {:.3f} s a leaf and has {} of {} now, {} before",
                                peers[place], seconds[place], now[place], leaves, was[place]));
  }
  if (others > 0) parts.push_back(fmt::format("{} other workers have other shares, too", others));
  return fmt::format("leaves are shared out by speed: {}", fmt::join(parts, "; "));
}

}  // namespace ostro::fleet
