// settle: brings workers that have just connected to one state. Each worker tells the others what it carries;
// those that are behind finish the step that others have finished; each gets the cells that it owns in the
// new epoch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ostro/fleet/processes/recovery.h"

namespace ostro::fleet {

// The part of a training state that a process carries from one epoch to the next. Does not own the worker,
// whose cells stay as they are.
struct WorkerState {
  int64_t epoch = 0;         // the epoch by which the cells of `worker` were cut; 0: it carries nothing
  Worker* worker = nullptr;  // the worker of that epoch
};

struct Settled {
  bool has_state = false;
  std::string lost;  // without a state: what is missing; "": none was brought
  int64_t step = 0;
  // Of each worker, by rank, also without a state: the seconds that a leaf usually took it until now; 0: not
  // known.
  std::vector<double> leaf_seconds = {};
};

// The layout of a state on `workers` workers.
using LayoutOf = std::function<Result<StateLayout>(int64_t workers)>;

// All workers of the group call it. The cells go to `worker`, which belongs to the new plan. When it returns,
// all workers have got theirs. Errors: those of the collectives and of the programs.
Result<Settled> settle(const WorkerPlan& plan, runtime::Collectives& c, const WorkerState& carried,
                       const LayoutOf& layout_of, Worker& worker);

}  // namespace ostro::fleet
