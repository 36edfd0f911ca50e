// What the schedules have in common: the rows of a leaf, and telling all workers what each leaf gave.
#pragma once

#include <functional>
#include <vector>

#include "ostro/fleet/workers/worker_plan.h"

namespace ostro::fleet {

// The rows of one leaf, as the leaf program of worker `rank` takes them.
train::BatchArrays leaf_batch(const WorkerPlan& plan, int64_t rank, const train::BatchArrays& batch,
                              int64_t leaf);

// Of what a leaf program gave: loss, weight, fingerprints and what is measured.
train::LeafResult leaf_result(const WorkerPlan& plan, const std::vector<runtime::Buffer>& out);

// Bytes of one leaf's result in a message.
int64_t leaf_result_bytes(const WorkerPlan& plan);

// The leaves of the worker at this place among its peers, ascending.
using LeavesOf = std::function<std::vector<int64_t>(size_t place)>;

// Sends the results of this worker's leaves to its peers, and fills in those of theirs.
Status share_leaf_results(const WorkerPlan& plan, runtime::Collectives& c, const std::vector<int64_t>& peers,
                          const LeavesOf& leaves_of, std::vector<train::LeafResult>& results);

}  // namespace ostro::fleet
