// slow_leaf: makes a worker slow on purpose, for tests and simulations of workers of unequal speed.
//
// OSTRO_SIM_SLOW=RANK:HOW[@STEP][,...]: from this step on (the first is 1), each leaf of the worker of that
// rank
//   xF    takes F times as long as it computes (F is 1 or more, for instance 2.5): the worker sleeps for the
//         rest, and its time is measured
//   Nms   lasts N milliseconds, if it does not compute for longer, and counts as exactly N: what follows from
//         the times of leaves is the same on every machine
// Of several entries for a worker the one with the highest step counts.
#pragma once

#include <chrono>
#include <cstdint>

namespace ostro {

// Whether OSTRO_SIM_SLOW is set.
bool leaves_are_slow();
// After a leaf that computed for `took`: waits as the variable says, and returns the seconds that the leaf
// counts. A value that cannot be read aborts with a message. Any thread may call it.
double slow_leaf(int64_t step, int64_t rank, std::chrono::duration<double> took);

}  // namespace ostro
