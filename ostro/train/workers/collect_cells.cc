#include "ostro/train/workers/collect_cells.h"

#include "ostro/spmd/run_parts.h"

namespace ostro::train {

using runtime::Buffer;

namespace {

constexpr int64_t kLeader = 0;

}  // namespace

Status collect_cells(const WorkerPlan& plan, runtime::Collectives& c, const std::vector<Buffer>& cells,
                     std::vector<Buffer>& whole) {
  const std::vector<int64_t> leader{kLeader};
  const std::vector<std::span<std::byte>> nothing(1);
  if (c.rank() == kLeader) whole.clear();
  for (size_t k = 0; k < plan.n; ++k) {
    if (c.rank() != kLeader) {
      if (plan.first_holder(k, c.rank())) RETURN_IF_ERROR(c.exchange(leader, {{cells[k].bytes()}}, nothing));
      continue;
    }
    std::vector<int64_t> senders;
    std::vector<Buffer> parts;
    for (int64_t w = 1; w < c.size(); ++w)
      if (plan.first_holder(k, w)) {
        senders.push_back(w);
        parts.push_back(Buffer::empty(plan.owned_shape(k, w)));
      }
    std::vector<std::span<std::byte>> receive;
    for (Buffer& b : parts) receive.push_back(b.mutable_bytes());
    RETURN_IF_ERROR(c.exchange(senders, std::vector<std::span<const std::byte>>(senders.size()), receive));
    whole.push_back(Buffer::empty(plan.shape(k)));
    spmd::place(plan.mesh(), kLeader, plan.owned(k), cells[k], whole.back());
    for (size_t i = 0; i < senders.size(); ++i)
      spmd::place(plan.mesh(), senders[i], plan.owned(k), parts[i], whole.back());
  }
  return Status();
}

}  // namespace ostro::train
