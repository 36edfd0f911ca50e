// Making a state whole at the leader.
#pragma once

#include "ostro/train/workers/worker.h"

namespace ostro::train {

// Sends the workers' cells to rank 0, which joins them into `whole`, an array for each parameter. Called by
// all with the same `cells` of their worker: parameters or a moment.
Status collect_cells(const WorkerPlan& plan, runtime::Collectives& group,
                     const std::vector<runtime::Buffer>& cells, std::vector<runtime::Buffer>& whole);

}  // namespace ostro::train
