#include "ostro/fleet/parts/state_layout.h"

#include <algorithm>
#include <cstring>

namespace ostro::fleet {

Region StateLayout::box(size_t k, int64_t rank) const {
  Region box;
  for (size_t i = 0; i < layouts[k].size(); ++i) {
    const auto [first, count] = spmd::held(mesh, rank, layouts[k][i], shapes[k].axes[i].size);
    box.emplace_back(first, first + count);
  }
  return box;
}

StateLayout make_state_layout(const train::StateArrays& arrays, const spmd::Placement& placement) {
  StateLayout out;
  out.mesh = placement.sharding.mesh;
  out.shapes = arrays.shapes;
  for (size_t k = 0; k < arrays.size(); ++k) {
    out.layouts.push_back(placement.layout(spmd::Role::kParameter, arrays.shapes[k]));
    int64_t owners = 1;
    for (const spmd::Split& s : out.layouts.back())
      if (s.split()) owners *= out.mesh.size_of(s.mesh_axis);
    out.owned_once.push_back(k < arrays.n ? owners == out.mesh.size() : out.owned_once[arrays.parameter[k]]);
  }
  return out;
}

Region common(const Region& a, const Region& b) {
  Region out;
  for (size_t i = 0; i < a.size(); ++i)
    out.emplace_back(std::max(a[i].first, b[i].first), std::min(a[i].second, b[i].second));
  return out;
}

bool is_empty(const Region& box) {
  return std::any_of(box.begin(), box.end(), [](const auto& axis) { return axis.first >= axis.second; });
}

int64_t element_count(const Region& box) {
  int64_t count = 1;
  for (const auto& [first, last] : box) count *= std::max<int64_t>(0, last - first);
  return count;
}

void copy_region(const Region& region, const Region& from_box, const std::byte* from, const Region& to_box,
                 std::byte* to, int64_t size) {
  if (is_empty(region)) return;
  // Neighbouring elements of the region are one run: the last axis, and those before it as long as all three
  // hold the same indices of the axes behind.
  size_t inner = region.size();
  int64_t run = 1;
  bool whole = true;
  while (inner > 0 && whole) {
    --inner;
    run *= region[inner].second - region[inner].first;
    whole = region[inner] == from_box[inner] && region[inner] == to_box[inner];
  }
  const int64_t runs = element_count(region) / run;
  const auto offset = [&](const Region& box, const std::vector<int64_t>& index) {
    int64_t at = 0;
    for (size_t i = 0; i < box.size(); ++i)
      at = at * (box[i].second - box[i].first) + index[i] - box[i].first;
    return at * size;
  };
  std::vector<int64_t> index;
  for (const auto& axis : region) index.push_back(axis.first);
  for (int64_t r = 0; r < runs; ++r) {
    std::memcpy(to + offset(to_box, index), from + offset(from_box, index), static_cast<size_t>(run * size));
    for (size_t i = inner; i-- > 0;) {
      if (++index[i] < region[i].second) break;
      index[i] = region[i].first;
    }
  }
}

}  // namespace ostro::fleet
