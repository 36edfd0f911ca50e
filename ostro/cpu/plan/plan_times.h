// How long the steps of a plan take: each run of a step is a span of the profile (base/profile.h) while there
// is one. OSTRO_PLAN_TIMES=1 moreover makes every executable write a table of CPU time to stderr when it
// goes, all runs but the first: for programs that are no training run (docs/profiling.md).
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

// What the spans of a step are about: its name, place in the plan ("12.0.3": step 3 of region 0 of step 12),
// shapes and costs.
SpanLabelPtr step_label(const compile::Step& step, const std::string& program, const std::string& place);

// Measures from its construction to its destruction: a span about `label`, and added to `time`. Either may be
// null.
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

// The rows, most CPU time first, with shares of all of it. Loops and branches are the sum of the rows inside
// them and therefore left out.
std::string print_times(const std::string& program, std::vector<StepRow> rows);

}  // namespace ostro::cpu
