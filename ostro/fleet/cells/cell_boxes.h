// Where the cells of an array of the state are: as boxes, for files that are cut in another way.
#pragma once

#include <optional>
#include <vector>

#include "ostro/checkpoint/tensor.h"
#include "ostro/fleet/workers/worker_plan.h"

namespace ostro::fleet {

// The elements of a whole array from `start` on, as checkpoints have them.
using FileBox = checkpoint::Box;

// What worker `rank` owns of array k.
FileBox owned_box(const WorkerPlan& plan, size_t k, int64_t rank);

// The part of `a` that lies in `b`; nothing when there is none.
std::optional<FileBox> shared_part(const FileBox& a, const FileBox& b);

// `box` as seen from the start of `from`.
checkpoint::Extents start_in(const FileBox& box, const FileBox& from);

// The first of the workers that own the same elements of array k, for each part of it, ascending.
std::vector<int64_t> first_holders(const WorkerPlan& plan, size_t k);

}  // namespace ostro::fleet
