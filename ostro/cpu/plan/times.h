// StepTimer, print_times: measure the time that the steps of a plan take.
//
// Each run of a step is a span of the profile (base/profile.h) while there is one. With OSTRO_PLAN_TIMES=1,
// every executable also writes a table of CPU times to stderr when it is destroyed, over all runs but the
// first. Use it for programs that are not training runs (docs/inside/profiling.md).
#pragma once

#include <string>
#include <vector>

#include "ostro/base/profile.h"
#include "ostro/compile/plan/plan.h"

namespace ostro::cpu {

struct StepTime {
  int64_t runs = 0;
  double wall = 0, cpu = 0;  // seconds; cpu is that of the whole process
};

// Is OSTRO_PLAN_TIMES set?
bool plan_times_wanted();

// Measures the time from its construction to its destruction, as a span with `label`, and adds it to `time`.
// Either may be null.
class StepTimer {
 public:
  StepTimer(StepTime* time, const SpanLabelPtr* label);
  ~StepTimer();

 private:
  Span span_;
  StepTime* time_;
  double wall_ = 0, cpu_ = 0;
};

// One line of the table: a step and where it stands.
struct StepRow {
  const compile::Step* step;
  StepTime time;
  int depth;
};

// The rows as text, most CPU time first, with their shares of the total. Loops and branches are left out,
// because their time is the sum of the rows inside them.
std::string print_times(const std::string& program, std::vector<StepRow> rows);

}  // namespace ostro::cpu
