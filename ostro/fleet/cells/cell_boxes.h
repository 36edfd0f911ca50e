// owned_box: where the cells of an array of the state are, as boxes of its elements, for files that are cut
// in another way. The functions read a plan and nothing else; any thread may call them.
#pragma once

#include <optional>
#include <vector>

#include "ostro/checkpoint/tensor.h"
#include "ostro/fleet/workers/worker_plan.h"

namespace ostro::fleet {

// The elements of a whole array from `start` on, as checkpoints have them.
using FileBox = checkpoint::Box;

// The elements of array k of the state that worker `rank` owns.
FileBox owned_box(const WorkerPlan& plan, size_t k, int64_t rank);

// The part of `a` that lies in `b`; nothing when there is none.
std::optional<FileBox> shared_part(const FileBox& a, const FileBox& b);

// The start of `box`, counted from the start of `from`.
checkpoint::Extents start_in(const FileBox& box, const FileBox& from);

// One rank for each part of array k: the lowest of those that own its elements. Ascending.
std::vector<int64_t> first_holders(const WorkerPlan& plan, size_t k);

}  // namespace ostro::fleet
