#include "ostro/spmd/layout.h"

#include <algorithm>

#include "ostro/base/check.h"

namespace ostro::spmd {
namespace {

int64_t divide_up(int64_t n, int64_t d) { return (n + d - 1) / d; }

int64_t count_in(const Cells& table, std::string_view axis) {
  for (const auto& [name, count] : table)
    if (name == axis) return count;
  return 0;
}

}  // namespace

int64_t subtree(int64_t count, int64_t workers) {
  for (int64_t s = 1; s <= count; s *= 2)
    if (divide_up(count, s) == workers) return s;
  return 0;
}

bool Split::over(const std::vector<std::string>& mesh_axes) const {
  return split() && std::find(mesh_axes.begin(), mesh_axes.end(), mesh_axis) != mesh_axes.end();
}

bool Split::leaves_some_empty() const {
  for (size_t c = 1; c < bounds.size(); ++c)
    if (bounds[c - 1] == bounds[c]) return true;
  return false;
}

bool Placement::may_split(Role role, std::string_view axis, const std::vector<ir::Axis>& axes) const {
  if (role != Role::kActivation) return true;
  return std::all_of(beside.begin(), beside.end(), [&](const auto& entry) {
    return entry.first != axis ||
           std::any_of(axes.begin(), axes.end(), [&](const ir::Axis& a) { return a.name == entry.second; });
  });
}

// The axis is a row of granules: cells, leaves, or single indices. Coordinates get whole granules. Where
// granules are leaves and whole subtrees can be dealt out, Split::leaves says so, and the axis can be summed
// over.
Split Placement::split(Role role, std::string_view axis, int64_t n, const std::string& mesh_axis) const {
  const int64_t workers = sharding.mesh.size_of(mesh_axis);
  if (workers == 1) return {};
  Split s{mesh_axis, {0}, {}};
  const int64_t cell_count = role == Role::kActivation ? 0 : count_in(cells, axis);
  const int64_t leaf_count = cell_count > 0 ? 0 : count_in(leaves.axes, axis);
  // Length of a granule: of a cell as box_sumsq cuts it, of a leaf as N8 does; else one index.
  const int64_t length = cell_count > 0   ? std::max<int64_t>(1, divide_up(n, cell_count))
                         : leaf_count > 0 ? numerics::leaf_size(axis, n, leaf_count)
                                          : 1;
  const int64_t granules = leaf_count > 0 ? leaf_count : divide_up(n, length);
  const int64_t whole = leaf_count > 0 ? subtree(leaf_count, workers) : 0;
  // Whole subtrees, or else as evenly as possible: no worker is empty while there are enough granules.
  for (int64_t c = 1; c < workers; ++c) {
    const int64_t before = whole > 0 ? std::min(c * whole, granules) : granules * c / workers;
    s.bounds.push_back(std::min(n, before * length));
  }
  s.bounds.push_back(n);
  if (whole > 0)
    for (int64_t c = 0; c <= workers; ++c) s.leaves.push_back(std::min(c * whole, leaf_count));
  return s;
}

Layout Placement::layout(Role role, const ir::Shape& shape) const {
  Layout out(shape.axes.size());
  for (const ir::Axis& m : sharding.mesh.axes) {
    if (m.size == 1) continue;
    for (const auto& [axis, mesh_axis] : map(role)) {
      const int64_t at = shape.find(axis);
      if (mesh_axis != m.name || at < 0 || out[static_cast<size_t>(at)].split()) continue;
      if (!may_split(role, axis, shape.axes)) continue;
      Split s = split(role, axis, shape.axes[static_cast<size_t>(at)].size, m.name);
      if (s.leaves_some_empty()) continue;
      out[static_cast<size_t>(at)] = std::move(s);
      break;
    }
  }
  if (role == Role::kGradient)  // the other splits are those of the parameter
    for (Split& s : out)
      if (s.over(leaf_axes)) s = {};
  return out;
}

int64_t coordinate(const ir::Mesh& mesh, int64_t rank, std::string_view mesh_axis) {
  int64_t stride = 1;
  for (size_t i = mesh.axes.size(); i-- > 0;) {
    if (mesh.axes[i].name == mesh_axis) return rank / stride % mesh.axes[i].size;
    stride *= mesh.axes[i].size;
  }
  return 0;
}

std::pair<int64_t, int64_t> held(const ir::Mesh& mesh, int64_t rank, const Split& split, int64_t size) {
  if (!split.split()) return {0, size};
  const auto c = static_cast<size_t>(coordinate(mesh, rank, split.mesh_axis));
  return {split.bounds[c], split.bounds[c + 1] - split.bounds[c]};
}

ir::Shape local_shape(const ir::Mesh& mesh, int64_t rank, const Layout& layout, const ir::Shape& shape) {
  OSTRO_CHECK(layout.size() == shape.axes.size(), "a layout of {} axes for {}", layout.size(), shape.str());
  ir::Shape out = shape;
  for (size_t i = 0; i < layout.size(); ++i)
    out.axes[i].size = held(mesh, rank, layout[i], shape.axes[i].size).second;
  return out;
}

}  // namespace ostro::spmd
