// count_of, axes_without, axes_named, box_length: questions about axes that the routines of all engines ask.
//
// Pure functions for any thread. The steps of a plan are checked before, so there are no errors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ostro/ir/program/attrs.h"
#include "ostro/ir/program/shape.h"

namespace ostro::compile {

// The product of the sizes of the axes; 1 for none.
int64_t count_of(std::span<const ir::Axis> axes);
// The axes of the shape that `names` leaves out, in the order of the shape.
std::vector<ir::Axis> axes_without(const ir::Shape& shape, const std::vector<std::string>& names);
// The axes of the shape that are in `names`, in the order of `names`. The shape must have each of them.
std::vector<ir::Axis> axes_named(const ir::Shape& shape, const std::vector<std::string>& names);
// The length, in elements, of one of the `boxes` boxes into which a fingerprint or box_sumsq with these
// attributes cuts an axis. For a part of a larger array the attribute `lengths` has the length of the boxes
// of the whole array; otherwise the axis is cut into boxes of equal length, of which the last may be shorter.
int64_t box_length(const ir::Attrs& attrs, const ir::Axis& axis, int64_t boxes);

}  // namespace ostro::compile
