// settle: brings workers that have just connected to one state. Each tells what it carries, those who are
// behind finish the step that others have finished, and each gets the cells that it owns from now on.
#pragma once

#include <functional>
#include <string>

#include "ostro/fleet/processes/recovery.h"

namespace ostro::fleet {

// What a process carries of a training state from one epoch to the next. Not owned; it keeps its cells.
struct WorkerState {
  int64_t epoch = 0;         // in which the cells of `worker` were cut; 0: nothing
  Worker* worker = nullptr;  // of that epoch
};

struct Settled {
  bool has_state = false;
  std::string lost;  // without a state: what is missing; "": none was brought
  int64_t step = 0;
};

// The layout of a state on so many workers.
using LayoutOf = std::function<Result<StateLayout>(int64_t workers)>;

// Called by all workers of the group. The cells go to `worker`, which is of the new plan. When it returns,
// all have got theirs.
Result<Settled> settle(const WorkerPlan& plan, runtime::Collectives& c, const WorkerState& carried,
                       const LayoutOf& layout_of, Worker& worker);

}  // namespace ostro::fleet
