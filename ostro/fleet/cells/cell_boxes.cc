#include "ostro/fleet/cells/cell_boxes.h"

#include <algorithm>

namespace ostro::fleet {

FileBox owned_box(const WorkerPlan& plan, size_t k, int64_t rank) {
  FileBox box;
  const ir::Shape& shape = plan.shape(k);
  for (size_t i = 0; i < shape.axes.size(); ++i) {
    const auto [start, size] = spmd::held(plan.mesh(), rank, plan.owned(k)[i], shape.axes[i].size);
    box.start.push_back(start);
    box.shape.push_back(size);
  }
  return box;
}

std::optional<FileBox> shared_part(const FileBox& a, const FileBox& b) {
  FileBox out = a;
  for (size_t d = 0; d < a.shape.size(); ++d) {
    out.start[d] = std::max(a.start[d], b.start[d]);
    out.shape[d] = std::min(a.start[d] + a.shape[d], b.start[d] + b.shape[d]) - out.start[d];
    if (out.shape[d] <= 0) return std::nullopt;
  }
  return out;
}

checkpoint::Extents start_in(const FileBox& box, const FileBox& from) {
  checkpoint::Extents out = box.start;
  for (size_t d = 0; d < out.size(); ++d) out[d] -= from.start[d];
  return out;
}

std::vector<int64_t> first_holders(const WorkerPlan& plan, size_t k) {
  std::vector<int64_t> out;
  for (int64_t rank = 0; rank < plan.mesh().size(); ++rank)
    if (plan.first_holder(k, rank)) out.push_back(rank);
  return out;
}

}  // namespace ostro::fleet
