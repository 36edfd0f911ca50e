// compare_parameters: whether the workers of a step compute with the same parameters (trainer.cross_check).
// Results of leaves that were computed with different ones say nothing about who computes wrongly.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ostro/fleet/check/votes.h"
#include "ostro/fleet/workers/cell_exchange.h"

namespace ostro::fleet {

// The parameters of this worker: the cells that it owns, its copies of those of mirror_of(rank), and the
// whole ones that its leaf program reads.
struct ParametersHere {
  const CellBuffers& owned;
  const CellBuffers& copies;
  const CellBuffers& whole;
};

// The worker that gave `to` the part of array k that worker `of` owns; `to` itself where it had it.
using PartSource = std::function<int64_t(size_t k, int64_t of, int64_t to)>;

// All workers that run different leaves (`peers`) call it, where no mesh axis but theirs has several workers.
// Returns what differs, with who is at fault if that is known; nothing when all read the same. Errors: those
// of the collectives and of the memory.
Result<std::optional<Disagreement>> compare_parameters(const WorkerPlan& plan, runtime::Collectives& c,
                                                       const std::vector<int64_t>& peers,
                                                       const ParametersHere& here, const PartSource& source,
                                                       int64_t step);

// The source of parts that gather_cells delivered.
int64_t gathered_from(const WorkerPlan& plan, size_t k, int64_t of, int64_t to);

}  // namespace ostro::fleet
