// How workers that have just connected come to one state: each tells what it brings, those who are behind
// finish the step that others have finished, and everyone gets the cells that it owns from now on.
#pragma once

#include <functional>
#include <string>

#include "ostro/fleet/processes/recovery.h"

namespace ostro::fleet {

// What a process brings of a training state. Not owned; it keeps its cells.
struct LiveState {
  int64_t epoch = 0;         // in which the cells of `worker` were cut; 0: nothing
  Worker* worker = nullptr;  // of that epoch
};

struct Settled {
  bool has_state = false;
  std::string lost;  // without a state: what is missing; "": nobody brought one
  int64_t step = 0;
};

// The layout of a state on so many workers.
using LayoutOf = std::function<Result<StateLayout>(int64_t workers)>;

// Called by all workers of the group. The cells go to `worker`, which is of the new plan. When it returns,
// all have got theirs.
Result<Settled> settle(const WorkerPlan& plan, runtime::Collectives& c, const LiveState& live,
                       const LayoutOf& layout_of, Worker& worker);

}  // namespace ostro::fleet
