// exchange_cells, gather_cells: move cells of gradients and of parameters between the workers that run
// different leaves.
//
// All of these workers call the same function at the same time. A cell whose bytes are contiguous in its
// array is sent and received without a copy. Errors: those of the collectives.
#pragma once

#include <vector>

#include "ostro/fleet/plan/worker_plan.h"
#include "ostro/runtime/collectives.h"
#include "ostro/train/step/gradient_sums.h"

namespace ostro::fleet {

using CellBuffers = std::vector<runtime::Buffer>;  // by parameter
using train::GradientAdder, train::SubtreeSums;

// Exchanges sums of gradients. Each worker has summed the gradients of some subtrees of the tree of leaves:
// sums[i] is this worker's sum of subtree i, whole arrays by parameter; peers[w] has counts[w] sums. From
// each of its sums, a worker sends to every peer the cells that the peer owns. Returns the cells that this
// worker owns: result[w][i] is cut out of sum i of peers[w].
Result<std::vector<std::vector<CellBuffers>>> exchange_cells(const WorkerPlan& plan, runtime::Collectives& c,
                                                             const std::vector<int64_t>& peers,
                                                             const std::vector<const CellBuffers*>& sums,
                                                             const std::vector<size_t>& counts);

// Returns the parameters as the leaf program reads them: the cells `owned` of this worker, joined with those
// of the workers that own the others.
Result<CellBuffers> gather_cells(const WorkerPlan& plan, runtime::Collectives& c, const CellBuffers& owned);

}  // namespace ostro::fleet
