// count_of, axes_without, axes_named, box_length: what the routines of engines ask of axes.
//
// Pure functions of checked steps; there are no errors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ostro/ir/program/attrs.h"
#include "ostro/ir/program/shape.h"

namespace ostro::compile {

// The points of the space over these axes.
int64_t count_of(std::span<const ir::Axis> axes);
// The axes of a shape that are not named, in its order.
std::vector<ir::Axis> axes_without(const ir::Shape& shape, const std::vector<std::string>& names);
// The named axes of a shape, in the order of the names.
std::vector<ir::Axis> axes_named(const ir::Shape& shape, const std::vector<std::string>& names);
// The length of `boxes` boxes along an axis (fingerprints and sums of boxes). A part of a larger array is
// told how long the boxes of the whole are.
int64_t box_length(const ir::Attrs& attrs, const ir::Axis& axis, int64_t boxes);

}  // namespace ostro::compile
