// exchange_cells, gather_cells: move cells of gradients and of parameters between the workers that run
// different leaves. A cell whose bytes lie in one run of an array is sent from there and received there;
// other cells are copied. All these workers call together. Errors: those of the collectives.
#pragma once

#include <utility>
#include <vector>

#include "ostro/fleet/workers/worker_plan.h"
#include "ostro/runtime/collectives.h"
#include "ostro/train/programs/leaf_plan.h"

namespace ostro::fleet {

using CellBuffers = std::vector<runtime::Buffer>;  // by parameter

// Exchanges sums of gradients. sums[i] is the sum over this worker's subtree i of leaves, by parameter. Every
// peer gets the cells that it owns of each sums[i]. counts[w] is the number of subtrees that peers[w] has.
// result[w][i] has the cells that this worker owns of the sum over subtree i of peers[w].
Result<std::vector<std::vector<CellBuffers>>> exchange_cells(const WorkerPlan& plan, runtime::Collectives& c,
                                                             const std::vector<int64_t>& peers,
                                                             const std::vector<const CellBuffers*>& sums,
                                                             const std::vector<size_t>& counts);

// The parameters as the leaf program reads them: `owned`, and the cells of the workers that own others.
Result<CellBuffers> gather_cells(const WorkerPlan& plan, runtime::Collectives& c, const CellBuffers& owned);

}  // namespace ostro::fleet
