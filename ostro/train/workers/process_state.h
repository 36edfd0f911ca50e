// Moving a training state between the leader and the workers of a group of processes.
#pragma once

#include "ostro/train/workers/worker.h"

namespace ostro::train {

// Every worker adopts its cells of the leader's state. Called by all of them; only the leader's `state` is
// read.
Status share_state(const WorkerPlan& plan, runtime::Collectives& group, const State& state, Worker& worker);

// Sends the workers' cells to the leader, which joins them into `whole`, an array for each parameter. Called
// by all with the same `cells` of their worker: parameters or a moment.
Status collect_cells(const WorkerPlan& plan, runtime::Collectives& group,
                     const std::vector<runtime::Buffer>& cells, std::vector<runtime::Buffer>& whole);

}  // namespace ostro::train
