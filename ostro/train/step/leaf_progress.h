// LeafProgress: the number of leaves that the present step of this process has done, for other threads to
// read.
#pragma once

#include <cstdint>

namespace ostro::train {

struct LeafProgress {
  int64_t done = 0, of = 0;  // leaves of the step; of: 0 before the first step
  double first_seconds = 0;  // the time of the first leaf of the process; 0: it is not done yet
};

// Thread-safe. The process has one, which the thread that runs the leaves writes.
LeafProgress leaf_progress();
void begin_leaves(int64_t of);
void leaf_done();

}  // namespace ostro::train
