#include "ostro/train/workers/process_state.h"

#include "ostro/spmd/run_parts.h"

namespace ostro::train {
namespace {

using runtime::Buffer;

constexpr int64_t kLeader = 0;

// The leader sends parts[w - 1] to worker w.
Status send_to_all(runtime::Collectives& c, const std::vector<Buffer>& parts) {
  std::vector<int64_t> others;
  std::vector<std::span<const std::byte>> send;
  for (int64_t w = 1; w < c.size(); ++w) {
    others.push_back(w);
    send.push_back(parts[static_cast<size_t>(w - 1)].bytes());
  }
  return c.exchange(others, send, std::vector<std::span<std::byte>>(others.size()));
}

}  // namespace

Status share_state(const WorkerPlan& plan, runtime::Collectives& c, const State& state, Worker& worker) {
  const std::vector<int64_t> leader{kLeader};
  const std::vector<std::span<const std::byte>> nothing(1);
  std::vector<std::vector<Buffer>> mine;
  for (const auto* whole : {&state.params, &state.first_moment, &state.second_moment}) {
    mine.emplace_back();
    for (size_t k = 0; k < plan.n; ++k) {
      if (c.rank() != kLeader) {
        mine.back().push_back(Buffer::empty(plan.owned_shape(k, c.rank())));
        RETURN_IF_ERROR(c.exchange(leader, nothing, {{mine.back().back().mutable_bytes()}}));
        continue;
      }
      const auto part = [&](int64_t w) { return spmd::shard(plan.mesh(), w, plan.owned(k), (*whole)[k]); };
      std::vector<Buffer> parts;
      for (int64_t w = 1; w < c.size(); ++w) parts.push_back(part(w));
      RETURN_IF_ERROR(send_to_all(c, parts));
      mine.back().push_back(part(kLeader));
    }
  }
  worker.adopt_cells(std::move(mine[0]), std::move(mine[1]), std::move(mine[2]));
  return Status();
}

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
