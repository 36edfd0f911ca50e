// owned_box, shared_part, ...: the places of a worker's cells in the arrays of the state, as boxes of
// elements. They say what a worker reads from files whose chunks are not its cells. The functions read a plan
// and nothing else; any thread may call them. There are no errors.
#pragma once

#include <optional>
#include <vector>

#include "ostro/checkpoint/tensor.h"
#include "ostro/fleet/plan/worker_plan.h"

namespace ostro::fleet {

// The elements of a whole array from `start` on, as checkpoints have them.
using FileBox = checkpoint::Box;

// The elements of array k of the state that worker `rank` owns.
FileBox owned_box(const WorkerPlan& plan, size_t k, int64_t rank);

// The part of `a` that lies in `b`; nothing when there is none.
std::optional<FileBox> shared_part(const FileBox& a, const FileBox& b);

// The start of `box`, counted from the start of `from`.
checkpoint::Extents start_in(const FileBox& box, const FileBox& from);

// The lowest rank of the owners of each part of array k, in ascending order.
std::vector<int64_t> first_holders(const WorkerPlan& plan, size_t k);

}  // namespace ostro::fleet
