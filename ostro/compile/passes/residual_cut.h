// Which values of a forward scan's body are kept for its reversed scan: a minimal cut. Internal to the remat
// pass.
#pragma once

#include <set>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::compile {

// The values to stack so that all of `residuals` can be had in the reversed body, by ops that cost little
// against the memory they spare (elementwise ops, layout, reductions of rows), at the least sum of bytes
// stacked and of work done again. `body` is that of a scan with `consts` constants, which the reversed body
// has anyway like the slices of the scan's xs, and `carries`.
std::set<ir::ValueId> residual_cut(const ir::Block& body, size_t consts, size_t carries,
                                   const std::vector<ir::ValueId>& residuals);

}  // namespace ostro::compile
