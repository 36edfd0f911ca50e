// How long the steps of a plan take. OSTRO_PLAN_TIMES=1 makes every executable write a table to stderr when
// it goes, all runs but the first: a tool for whoever works on speed.
#pragma once

#include <string>
#include <vector>

#include "ostro/compile/plan.h"

namespace ostro::cpu {

struct StepTime {
  int64_t runs = 0;
  double wall = 0, cpu = 0;  // seconds; cpu is that of the whole process
};

// Is OSTRO_PLAN_TIMES set?
bool plan_times_wanted();

// Adds the time from its construction to its destruction to `time`, unless that is null.
class StepTimer {
 public:
  explicit StepTimer(StepTime* time);
  ~StepTimer();

 private:
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
