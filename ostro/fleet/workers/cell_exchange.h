// exchange_cells, gather_cells: move cells of gradients and of parameters between the workers that run
// different leaves. Cells that lie together in an array are sent from it and received into it; others are
// copied. All these workers call at the same time. Errors: those of the collectives.
#pragma once

#include <utility>
#include <vector>

#include "ostro/fleet/workers/worker_plan.h"
#include "ostro/runtime/collectives.h"
#include "ostro/train/programs/leaf_plan.h"

namespace ostro::fleet {

using CellBuffers = std::vector<runtime::Buffer>;  // by parameter

// Sends every peer its cells of sums[i], of which this worker has as many as it has subtrees, and receives
// this worker's cells of theirs: the result by peer and subtree. `counts` are the subtrees of each peer.
Result<std::vector<std::vector<CellBuffers>>> exchange_cells(const WorkerPlan& plan, runtime::Collectives& c,
                                                             const std::vector<int64_t>& peers,
                                                             const std::vector<const CellBuffers*>& sums,
                                                             const std::vector<size_t>& counts);

// The parameters as the leaf program reads them: `owned`, and the cells of the workers that own others.
Result<CellBuffers> gather_cells(const WorkerPlan& plan, runtime::Collectives& c, const CellBuffers& owned);

}  // namespace ostro::fleet
