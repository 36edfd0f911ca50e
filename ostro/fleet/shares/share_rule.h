// fastest_counts, with_fewer_sums, ShareKeeper: decide from measured times how many leaves each worker runs
// (trainer.shares: measured). The leader decides and tells the others. There are no errors. Not thread-safe.
//
// Times of leaves are in seconds, by place (leaf_shares.h); 0: not known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ostro/fleet/shares/leaf_shares.h"
#include "ostro/fleet/shares/recent_times.h"

namespace ostro::fleet {

// The number of leaves of each place with which the slowest is done soonest. Each has one at least, if there
// are enough, so that its time stays known. `seconds` are above 0. Of places that would be done at the same
// time the first one gets the leaf.
std::vector<int64_t> fastest_counts(int64_t leaves, const std::vector<double>& seconds);

// Moves leaves between neighbours where the largest subtrees of their ranges become fewer, so that fewer
// partial sums are sent. No place gets work for more than `most` seconds by that, or loses its last leaf.
std::vector<int64_t> with_fewer_sums(std::vector<int64_t> counts, const std::vector<double>& seconds,
                                     double most);

// Notes how long leaves take, and says when other shares are worth their price.
//
// A step is taken to last as long as its slowest worker computes, and in addition what it lasted longer than
// that until now; this part grows with the number of partial sums that are sent (spmd.md, "What workers hold
// and send"). With several slices, where sending may be hidden beside leaves, it is what it was with as many
// sums, if there were such steps among the last kForgets: what made them long may have passed. Shares change
// when a step would be shorter by 10 % or more, after 4 steps with the present ones; at the begin of an
// epoch, or of steps with another number of leaves, at once if times are known.
class ShareKeeper {
 public:
  static constexpr double kGain = 1.1;
  static constexpr int64_t kSteps = 4;
  static constexpr int64_t kForgets = 200;

  // For an epoch with these workers, which have `shares` now. `slices`: the slice of each place, ascending.
  // `seconds`: times of leaves that are known from before. `keeps_slices`: each slice keeps the leaves that
  // it has with even shares; its workers may have others (numerics.slice_partials).
  ShareKeeper(std::vector<int64_t> slices, const std::vector<double>& seconds, LeafShares shares = {},
              bool keeps_slices = false);

  // Takes what a step took: each place for a leaf, and the whole step.
  void note(const std::vector<double>& leaf_seconds, double step_seconds);
  // The shares for the next step, of `leaves` leaves, when some worker is to have another number of them;
  // they count as taken.
  std::optional<LeafShares> next(int64_t leaves);

  const LeafShares& shares() const { return shares_; }
  // The usual time of a leaf by place; where it is not known, that of the median place. 0: none is known.
  std::vector<double> leaf_seconds() const;

 private:
  int64_t workers() const { return static_cast<int64_t>(times_.size()); }
  double slowest(int64_t leaves, const LeafShares& shares, const std::vector<double>& seconds) const;
  double partials(int64_t leaves, const LeafShares& shares) const;
  LeafShares inside_slices(int64_t leaves, const std::vector<double>& seconds) const;

  const std::vector<int64_t> slices_;
  const bool keeps_slices_;
  std::vector<RecentTimes> times_;
  RecentTimes steps_;  // whole ones, with the present shares
  // What steps lasted longer than their slowest worker computed, and the last of them, by the number of
  // partial sums.
  struct Beside {
    double seconds = 0;
    int64_t step = 0;
  };
  std::map<double, Beside> beside_;
  LeafShares shares_;
  int64_t leaves_ = 0;  // of the last step
  int64_t noted_ = 0;   // steps with the present shares
  int64_t steps_noted_ = 0;
};

}  // namespace ostro::fleet
