// leaf_batch, share_leaf_results: the parts of a step that all schedules have in common: the rows of a leaf,
// and the exchange of the results of leaves.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ostro/fleet/plan/worker_plan.h"
#include "ostro/fleet/shares/leaf_clock.h"
#include "ostro/fleet/workers/slice_exchange.h"

namespace ostro::fleet {

// The rows of one leaf, as the leaf program of worker `rank` takes them.
train::BatchArrays leaf_batch(const WorkerPlan& plan, int64_t rank, const train::BatchArrays& batch,
                              int64_t leaf);

// The results of the leaf programs of this worker, without the gradients, by leaf; empty for leaves of
// others. Read them when all leaves have been started, so that no leaf waits for another.
using LeafOutputs = std::vector<train::LeafResults<runtime::Buffer>>;

// The bytes of one leaf's result in a message.
int64_t leaf_result_bytes(const WorkerPlan& plan);

// The leaves of the worker at this place among its peers, ascending.
using LeavesOf = std::function<std::vector<int64_t>(size_t place)>;

// What share_leaf_results sends, in a worker's load. Where it goes in rounds, as gather_all does, Sent::times
// is their number, and each is a message to one worker.
inline constexpr const char* kResultsOfLeaves = "losses and weights of leaves";

// Reads the results of this worker's leaves, sends them to its peers, and receives theirs: inside slices and
// between them if `slices` is not null, and else in rounds where all workers are peers and many. With `times`
// they also tell each other `times->own`, and `times->all` is filled in. Returns the results of all leaves.
// Errors: those of the collectives and of the leaf programs.
Result<std::vector<train::LeafResult>> share_leaf_results(const WorkerPlan& plan, runtime::Collectives& c,
                                                          const std::vector<int64_t>& peers,
                                                          const LeavesOf& leaves_of,
                                                          const LeafOutputs& outputs,
                                                          const SliceExchange* slices,
                                                          LeafTimes* times = nullptr);

// Adds to `load` what worker `rank` sends in share_leaf_results. `slices`: its own, or null.
void add_leaf_results(const WorkerPlan& plan, int64_t rank, int64_t leaves, const SliceExchange* slices,
                      train::WorkerLoad& load);

// The SliceExchange of a worker; null when the plan's exchanges have one level.
std::unique_ptr<SliceExchange> make_slice_exchange(const WorkerPlan& plan, int64_t rank);

}  // namespace ostro::fleet
