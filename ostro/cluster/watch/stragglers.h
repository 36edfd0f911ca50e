// Finds workers that compute for longer than the others, step after step.
#pragma once

#include <cstdint>
#include <map>

#include "ostro/cluster/watch/progress.h"

namespace ostro::cluster {

// A worker straggles when the time that it computes for a leaf is more than 1.5 times the median of all, in
// every report over 20 steps (three reports at least); until one is not.
class Stragglers {
 public:
  // Whether this report makes the member a straggler that it was not before.
  bool report(int64_t member, const Progress& progress);
  bool straggles(int64_t member) const;
  // The member's seconds for a leaf, divided by the median of all; 0: not known.
  double ratio(int64_t member) const;
  void remove(int64_t member) { members_.erase(member); }
  // Ranks and shares change with an epoch: everything is counted anew, but who straggles stays known.
  void restart();

 private:
  struct Entry {
    double seconds = 0;            // for a leaf, in the last step
    int64_t step = 0;              // of the last report
    int64_t since = 0, count = 0;  // the first of the reports in a row that were slow, and how many
    bool straggles = false;
  };
  double median() const;

  std::map<int64_t, Entry> members_;
};

}  // namespace ostro::cluster
