#include "ostro/ir/program/mesh.h"

namespace ostro::ir {
namespace {

bool listed(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const size_t end = names.find('*');
    if (names.substr(0, end) == name) return true;
    if (end == std::string_view::npos) return false;
    names.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

std::vector<int64_t> Mesh::peers(int64_t rank, std::string_view names) const {
  // From the innermost axis outwards: every peer so far, at every coordinate of the next axis.
  std::vector<int64_t> ranks{rank};
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0; stride *= axes[i].size) {
    const int64_t size = axes[i].size;
    if (!listed(names, axes[i].name)) continue;
    std::vector<int64_t> more;
    for (int64_t c = 0; c < size; ++c)
      for (const int64_t r : ranks) more.push_back(r + (c - r / stride % size) * stride);
    ranks = std::move(more);
  }
  return ranks;
}

}  // namespace ostro::ir
