// Stragglers: finds workers that compute for longer than the others, step after step.
#pragma once

#include <cstdint>
#include <map>

#include "ostro/cluster/watch/progress.h"

namespace ostro::cluster {

// A worker straggles when its compute time for a leaf is more than 1.5 times the median of all, in every
// report over 20 steps (three reports at least); it stops at the first report that is not. Not thread-safe.
class Stragglers {
 public:
  // Takes a report. Returns true when it makes the member a straggler that it was not before.
  bool report(int64_t member, const Progress& progress);
  bool straggles(int64_t member) const;
  // The member's seconds for a leaf, divided by the median of all; 0: not known.
  double ratio(int64_t member) const;
  void remove(int64_t member) { members_.erase(member); }
  // Forgets the reports, because ranks and shares change with an epoch. Members that straggle keep the mark.
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
