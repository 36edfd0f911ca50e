// Leaf runs: what the schedules have in common, the rows of a leaf, and telling all workers what each leaf
// gave.
#pragma once

#include <functional>
#include <vector>

#include "ostro/fleet/workers/worker_plan.h"

namespace ostro::fleet {

// The rows of one leaf, as the leaf program of worker `rank` takes them.
train::BatchArrays leaf_batch(const WorkerPlan& plan, int64_t rank, const train::BatchArrays& batch,
                              int64_t leaf);

// What the leaf programs of this worker gave, without the gradients, by leaf; empty for leaves of others.
// Read when all of them have been started, so that no leaf waits for another.
using LeafOutputs = std::vector<train::LeafResults<runtime::Buffer>>;

// Bytes of one leaf's result in a message.
int64_t leaf_result_bytes(const WorkerPlan& plan);

// The leaves of the worker at this place among its peers, ascending.
using LeavesOf = std::function<std::vector<int64_t>(size_t place)>;

// Reads the results of this worker's leaves, sends them to its peers, and receives those of theirs. The
// results of all leaves.
Result<std::vector<train::LeafResult>> share_leaf_results(const WorkerPlan& plan, runtime::Collectives& c,
                                                          const std::vector<int64_t>& peers,
                                                          const LeavesOf& leaves_of,
                                                          const LeafOutputs& outputs);

}  // namespace ostro::fleet
