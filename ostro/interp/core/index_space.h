// offsets: index spaces over named axes, and the position of each of their points in an operand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/ir/program/shape.h"

namespace ostro::interp {

// Returns, for every point of the row-major index space over `axes`, its offset, in elements, in an array of
// `shape`.
// An axis that the shape does not have gets stride 0 (a broadcast). An axis of the shape that is not in
// `axes` stays at index 0.
std::vector<int64_t> offsets(const std::vector<ir::Axis>& axes, const ir::Shape& shape);

// The axes of `shape` with these names, in the order of the names.
std::vector<ir::Axis> axes_named(const ir::Shape& shape, const std::vector<std::string>& names);
// The axes of `shape` with / without these names, in the order of the shape.
std::vector<ir::Axis> axes_in(const ir::Shape& shape, const std::vector<std::string>& names);
std::vector<ir::Axis> axes_not_in(const ir::Shape& shape, const std::vector<std::string>& names);

// Number of points.
int64_t count(const std::vector<ir::Axis>& axes);

// Distance in elements between neighbours along the axis.
int64_t stride_of(const ir::Shape& shape, std::string_view axis);

// The offsets, in row-major order, of the part of a value whose indices along `axis` are start, start + step,
// ..., `size` of them.
std::vector<int64_t> part(const ir::Shape& shape, std::string_view axis, int64_t start, int64_t size,
                          int64_t step = 1);

}  // namespace ostro::interp
