// residual_cut: decides by a minimal cut of a graph which values of a forward scan's body are stacked for its
// reversed scan. Internal to the remat pass.
#pragma once

#include <set>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::compile {

// The values to stack so that the reversed body can get all of `residuals`: it reads a stacked value, or
// computes a value again from others. Only cheap ops are computed again (elementwise ops, layout, reductions
// of rows). The choice makes the sum of the bytes stacked and the cost of the work done again as small as
// possible. `body` is the body of a scan with `consts` constants and `carries` carries. The constants and the
// slices of the scan's xs need not be stacked: the reversed body has them.
std::set<ir::ValueId> residual_cut(const ir::Block& body, size_t consts, size_t carries,
                                   const std::vector<ir::ValueId>& residuals);

}  // namespace ostro::compile
