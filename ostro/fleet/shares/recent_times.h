// RecentTimes: the times of the last few steps, and the usual one among them, which one slow step does not
// change. A value of numbers; not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ostro::fleet {

class RecentTimes {
 public:
  static constexpr size_t kMost = 5;

  // Takes the next time in seconds; 0 and less: there is none.
  void add(double seconds) {
    if (!(seconds > 0)) return;
    if (times_.size() == kMost) times_.erase(times_.begin());
    times_.push_back(seconds);
  }
  // The (lower) median in seconds; 0 without times.
  double usual() const {
    if (times_.empty()) return 0;
    std::vector<double> sorted = times_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }

 private:
  std::vector<double> times_;  // the oldest first
};

}  // namespace ostro::fleet
