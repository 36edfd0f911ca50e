#include "ostro/compile/plan/axes.h"

#include <algorithm>

namespace ostro::compile {

int64_t count_of(std::span<const ir::Axis> axes) {
  int64_t n = 1;
  for (const ir::Axis& a : axes) n *= a.size;
  return n;
}

std::vector<ir::Axis> axes_without(const ir::Shape& shape, const std::vector<std::string>& names) {
  std::vector<ir::Axis> axes;
  for (const ir::Axis& a : shape.axes)
    if (std::find(names.begin(), names.end(), a.name) == names.end()) axes.push_back(a);
  return axes;
}

std::vector<ir::Axis> axes_named(const ir::Shape& shape, const std::vector<std::string>& names) {
  std::vector<ir::Axis> axes;
  for (const std::string& name : names) axes.push_back({name, shape.size_of(name)});
  return axes;
}

int64_t box_length(const ir::Attrs& attrs, const ir::Axis& axis, int64_t boxes) {
  if (attrs.has("lengths"))
    for (size_t i = 0; i < attrs.strs("axes").size(); ++i)
      if (attrs.strs("axes")[i] == axis.name) return attrs.ints("lengths")[i];
  return std::max<int64_t>(1, (axis.size + boxes - 1) / boxes);
}

}  // namespace ostro::compile
