#include "ostro/compile/plan/contraction.h"

#include <algorithm>
#include <numeric>

namespace ostro::compile {

Contraction contraction_of(const std::vector<ir::Axis>& contracted, const numerics::LeafTable& leaves) {
  Contraction c;
  c.size = 1;
  for (const ir::Axis& a : contracted) c.size *= a.size;
  std::vector<int64_t> leaf;  // of each index; empty while no axis is cut
  int64_t total = 1;
  for (const auto& [name, count] : leaves.axes) {
    if (count == 1) continue;
    int64_t inner = 1;
    for (size_t i = contracted.size(); i-- > 0; inner *= contracted[i].size) {
      if (contracted[i].name != name) continue;
      leaf.resize(static_cast<size_t>(c.size));
      const int64_t length = numerics::leaf_size(name, contracted[i].size, count);
      for (int64_t r = 0; r < c.size; ++r) {
        int64_t& l = leaf[static_cast<size_t>(r)];
        l = l * count + r / inner % contracted[i].size / length;
      }
      c.tree_counts.push_back(count);
      total *= count;
      break;
    }
  }
  c.segment_ends.assign(static_cast<size_t>(total), 0);
  if (c.tree_counts.empty()) {
    c.segment_ends[0] = c.size;
    return c;
  }
  for (int64_t l : leaf) ++c.segment_ends[static_cast<size_t>(l)];
  std::partial_sum(c.segment_ends.begin(), c.segment_ends.end(), c.segment_ends.begin());
  c.order.resize(leaf.size());
  std::iota(c.order.begin(), c.order.end(), 0);
  std::sort(c.order.begin(), c.order.end(), [&](int64_t a, int64_t b) {
    const int64_t leaf_a = leaf[static_cast<size_t>(a)], leaf_b = leaf[static_cast<size_t>(b)];
    return leaf_a != leaf_b ? leaf_a < leaf_b : a < b;
  });
  return c;
}

std::vector<int64_t> offsets_over(const std::vector<ir::Axis>& axes, const View& view) {
  std::vector<int64_t> out{0};
  for (const ir::Axis& a : axes) {
    const int64_t at = view.shape.find(a.name);
    const int64_t stride = at < 0 ? 0 : view.strides[static_cast<size_t>(at)];
    std::vector<int64_t> next;
    next.reserve(out.size() * static_cast<size_t>(a.size));
    for (int64_t base : out)
      for (int64_t i = 0; i < a.size; ++i) next.push_back(base + i * stride);
    out = std::move(next);
  }
  return out;
}

std::vector<int64_t> scale_offsets(const std::vector<ir::Axis>& axes, const std::vector<std::string>& scaled,
                                   const std::string& groups, const View& matrix, const View& scales) {
  // Each point's row of the matrix, and where its other axes lead to among the scales.
  View rows = scales;
  rows.shape.axes.clear();
  rows.strides.clear();
  int64_t count = 1;
  for (size_t i = scaled.size(); i-- > 0;) {
    rows.shape.axes.push_back({scaled[i], matrix.shape.size_of(scaled[i])});
    rows.strides.push_back(count);
    count *= rows.shape.axes.back().size;
  }
  const std::vector<int64_t> row = offsets_over(axes, rows);
  std::vector<int64_t> out = offsets_over(axes, scales);
  const auto at = static_cast<size_t>(scales.shape.find(groups));
  const int64_t each = count / scales.shape.axes[at].size;
  for (size_t i = 0; i < out.size(); ++i) out[i] += row[i] / each * scales.strides[at];
  return out;
}

std::vector<int64_t> in_order(std::vector<int64_t> offsets, const Contraction& contraction) {
  if (contraction.order.empty()) return offsets;
  std::vector<int64_t> out(offsets.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = offsets[static_cast<size_t>(contraction.order[i])];
  return out;
}

}  // namespace ostro::compile
