#include "ostro/fleet/shares/share_rule.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "ostro/base/check.h"

namespace ostro::fleet {

std::vector<int64_t> fastest_counts(int64_t leaves, const std::vector<double>& seconds) {
  const auto workers = static_cast<int64_t>(seconds.size());
  const int64_t least = leaves >= workers ? 1 : 0;
  std::vector<int64_t> counts(seconds.size(), least);
  // When each would be done with one leaf more.
  using Done = std::pair<double, size_t>;
  std::priority_queue<Done, std::vector<Done>, std::greater<>> soonest;
  for (size_t place = 0; place < seconds.size(); ++place)
    soonest.emplace(static_cast<double>(least + 1) * seconds[place], place);
  for (int64_t left = leaves - least * workers; left > 0; --left) {
    const size_t place = soonest.top().second;
    soonest.pop();
    ++counts[place];
    soonest.emplace(static_cast<double>(counts[place] + 1) * seconds[place], place);
  }
  return counts;
}

std::vector<int64_t> with_fewer_sums(std::vector<int64_t> counts, const std::vector<double>& seconds,
                                     double most) {
  constexpr int64_t kFarthest = 8;  // that a cut between two neighbours moves
  const int64_t leaves = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const auto sums = [&](int64_t begin, int64_t end) { return train::subtrees(leaves, {begin, end}).size(); };
  const auto fits = [&](int64_t count, size_t place) {
    return count >= 1 && static_cast<double>(count) * seconds[place] <= most;
  };
  int64_t begin = 0;
  for (size_t place = 0; place + 1 < counts.size(); ++place) {
    const int64_t cut = begin + counts[place], end = cut + counts[place + 1];
    int64_t best = cut;
    size_t fewest = sums(begin, cut) + sums(cut, end);
    for (int64_t to = cut - kFarthest; to <= cut + kFarthest; ++to) {
      if (!fits(to - begin, place) || !fits(end - to, place + 1)) continue;
      const size_t these = sums(begin, to) + sums(to, end);
      if (these < fewest) best = to, fewest = these;
    }
    counts[place] = best - begin;
    counts[place + 1] = end - best;
    begin = best;
  }
  return counts;
}

ShareKeeper::ShareKeeper(std::vector<int64_t> slices, const std::vector<double>& seconds, LeafShares shares,
                         bool keeps_slices)
    : slices_(std::move(slices)),
      keeps_slices_(keeps_slices),
      times_(slices_.size()),
      shares_(std::move(shares)) {
  for (size_t place = 0; place < std::min(times_.size(), seconds.size()); ++place)
    times_[place].add(seconds[place]);
}

void ShareKeeper::note(const std::vector<double>& leaf_seconds, double step_seconds) {
  OSTRO_CHECK(leaf_seconds.size() == times_.size(), "the times of {} workers, of {}", leaf_seconds.size(),
              times_.size());
  for (size_t place = 0; place < times_.size(); ++place) times_[place].add(leaf_seconds[place]);
  steps_.add(step_seconds);
  ++noted_, ++steps_noted_;
}

std::vector<double> ShareKeeper::leaf_seconds() const {
  std::vector<double> out, known;
  for (const RecentTimes& times : times_) {
    out.push_back(times.usual());
    if (out.back() > 0) known.push_back(out.back());
  }
  if (known.empty()) return out;
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>((known.size() - 1) / 2);
  std::nth_element(known.begin(), middle, known.end());
  std::replace(out.begin(), out.end(), 0.0, *middle);
  return out;
}

double ShareKeeper::slowest(int64_t leaves, const LeafShares& shares,
                            const std::vector<double>& seconds) const {
  const std::vector<int64_t> counts = shares.counts(leaves, workers());
  double most = 0;
  for (size_t place = 0; place < counts.size(); ++place)
    most = std::max(most, static_cast<double>(counts[place]) * seconds[place]);
  return most;
}

// The mean number of partial sums that a worker sends; with several slices, that a slice sends to others.
double ShareKeeper::partials(int64_t leaves, const LeafShares& shares) const {
  int64_t sums = 0, senders = 0;
  const bool several = slices_.front() != slices_.back();
  for (int64_t place = 0; place < workers(); ++senders) {
    train::LeafRange range = shares.range(leaves, workers(), place);
    for (const int64_t slice = slices_[static_cast<size_t>(place++)];
         several && place < workers() && slices_[static_cast<size_t>(place)] == slice; ++place)
      range.end = shares.range(leaves, workers(), place).end;
    sums += static_cast<int64_t>(train::subtrees(leaves, range).size());
  }
  return static_cast<double>(sums) / static_cast<double>(senders);
}

// Each slice has the leaves that it has with even shares, so that as few partial sums leave it. Its workers
// have shares by their speed.
LeafShares ShareKeeper::inside_slices(int64_t leaves, const std::vector<double>& seconds) const {
  const LeafShares even;
  std::vector<int64_t> counts;
  for (size_t begin = 0; begin < slices_.size();) {
    size_t end = begin;
    int64_t of_slice = 0;
    for (; end < slices_.size() && slices_[end] == slices_[begin]; ++end) {
      const train::LeafRange own = even.range(leaves, workers(), static_cast<int64_t>(end));
      of_slice += own.end - own.begin;
    }
    const std::vector<int64_t> own =
        fastest_counts(of_slice, {seconds.begin() + static_cast<std::ptrdiff_t>(begin),
                                  seconds.begin() + static_cast<std::ptrdiff_t>(end)});
    counts.insert(counts.end(), own.begin(), own.end());
    begin = end;
  }
  return LeafShares(counts);
}

std::optional<LeafShares> ShareKeeper::next(int64_t leaves) {
  const bool others = leaves != std::exchange(leaves_, leaves);
  if (workers() < 2 || leaves == 0 || (!others && noted_ < kSteps)) return std::nullopt;
  const std::vector<double> seconds = leaf_seconds();
  if (!(seconds[0] > 0)) return std::nullopt;
  const double computing = slowest(leaves, shares_, seconds), sent = partials(leaves, shares_);
  const double beside = others ? 0 : std::max(0.0, steps_.usual() - computing);
  const bool several = slices_.front() != slices_.back();
  if (others) beside_.clear();
  if (several && !others) beside_[sent] = {beside, steps_noted_};
  std::erase_if(beside_, [&](const auto& known) { return steps_noted_ - known.second.step > kForgets; });
  const auto lasts = [&](const LeafShares& shares) {
    const double sums = partials(leaves, shares);
    const auto known = beside_.find(sums);
    return slowest(leaves, shares, seconds) +
           (known != beside_.end() ? known->second.seconds : beside * (sums + 1) / (sent + 1));
  };
  std::vector<LeafShares> choices(1);  // even shares
  const std::vector<int64_t> fastest = fastest_counts(leaves, seconds);
  if (!several || !keeps_slices_) choices.emplace_back(fastest);
  if (several) {
    choices.push_back(inside_slices(leaves, seconds));
  } else {
    const double soonest = slowest(leaves, choices.back(), seconds);
    for (const double longer : {1.0, 1.05})
      choices.emplace_back(with_fewer_sums(fastest, seconds, longer * soonest));
  }
  const LeafShares best =
      *std::min_element(choices.begin(), choices.end(),
                        [&](const LeafShares& a, const LeafShares& b) { return lasts(a) < lasts(b); });
  if (computing + beside < kGain * lasts(best)) return std::nullopt;
  shares_ = best;
  steps_ = RecentTimes();
  noted_ = 0;
  return shares_;
}

}  // namespace ostro::fleet
