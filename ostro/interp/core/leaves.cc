#include "ostro/interp/core/leaves.h"

#include "ostro/interp/core/index_space.h"

namespace ostro::interp {

// Numbers the nested leaf of every flattened index: going over the table in its order, the leaf within each
// axis becomes the last digit of the number. Appending the indices in ascending order then fills the leaves
// in order.
ContractionLeaves cut(const std::vector<ir::Axis>& contracted, const numerics::LeafTable& table) {
  ContractionLeaves leaves;
  // leaf_of[r] numbers the nested leaf that the flattened index r belongs to.
  std::vector<size_t> leaf_of(static_cast<size_t>(count(contracted)), 0);
  size_t total = 1;
  for (const auto& [name, leaf_count] : table.axes) {
    int64_t inner = 1;  // row-major stride of the axis in the contracted space
    for (size_t i = contracted.size(); i-- > 0 && contracted[i].name != name;) inner *= contracted[i].size;
    for (const ir::Axis& axis : contracted) {
      if (axis.name != name || leaf_count == 1) continue;
      const int64_t length = numerics::leaf_size(name, axis.size, leaf_count);
      for (size_t r = 0; r < leaf_of.size(); ++r) {
        const int64_t index = static_cast<int64_t>(r) / inner % axis.size;
        leaf_of[r] = leaf_of[r] * static_cast<size_t>(leaf_count) + static_cast<size_t>(index / length);
      }
      leaves.counts.push_back(leaf_count);
      total *= static_cast<size_t>(leaf_count);
    }
  }
  leaves.indices.resize(total);
  for (size_t r = 0; r < leaf_of.size(); ++r) leaves.indices[leaf_of[r]].push_back(static_cast<int64_t>(r));
  return leaves;
}

}  // namespace ostro::interp
