#include "ostro/interp/core/index_space.h"

#include <algorithm>

namespace ostro::interp {
namespace {

bool listed(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<int64_t> offsets(const std::vector<ir::Axis>& axes, const ir::Shape& shape) {
  const std::vector<int64_t> strides = shape.strides();
  std::vector<int64_t> points{0};
  for (const ir::Axis& axis : axes) {
    const int64_t at = shape.find(axis.name);
    const int64_t stride = at < 0 ? 0 : strides[static_cast<size_t>(at)];
    std::vector<int64_t> longer;
    longer.reserve(points.size() * static_cast<size_t>(axis.size));
    for (int64_t point : points)
      for (int64_t i = 0; i < axis.size; ++i) longer.push_back(point + i * stride);
    points = std::move(longer);
  }
  return points;
}

std::vector<ir::Axis> axes_named(const ir::Shape& shape, const std::vector<std::string>& names) {
  std::vector<ir::Axis> axes;
  for (const std::string& name : names) axes.push_back({name, shape.size_of(name)});
  return axes;
}

std::vector<ir::Axis> axes_in(const ir::Shape& shape, const std::vector<std::string>& names) {
  std::vector<ir::Axis> axes;
  for (const ir::Axis& a : shape.axes)
    if (listed(names, a.name)) axes.push_back(a);
  return axes;
}

std::vector<ir::Axis> axes_not_in(const ir::Shape& shape, const std::vector<std::string>& names) {
  std::vector<ir::Axis> axes;
  for (const ir::Axis& a : shape.axes)
    if (!listed(names, a.name)) axes.push_back(a);
  return axes;
}

int64_t count(const std::vector<ir::Axis>& axes) {
  int64_t n = 1;
  for (const ir::Axis& a : axes) n *= a.size;
  return n;
}

int64_t stride_of(const ir::Shape& shape, std::string_view axis) { return shape.strides()[shape.find(axis)]; }

std::vector<int64_t> part(const ir::Shape& shape, std::string_view axis, int64_t start, int64_t size,
                          int64_t step) {
  const auto at = static_cast<size_t>(shape.find(axis));
  const std::vector<int64_t> strides = shape.strides();
  std::vector<int64_t> points{0};
  for (size_t d = 0; d < shape.axes.size(); ++d) {
    std::vector<int64_t> longer;
    for (int64_t point : points)
      for (int64_t i = 0; i < (d == at ? size : shape.axes[d].size); ++i)
        longer.push_back(point + (d == at ? start + i * step : i) * strides[d]);
    points = std::move(longer);
  }
  return points;
}

}  // namespace ostro::interp
