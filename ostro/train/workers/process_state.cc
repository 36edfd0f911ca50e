#include "ostro/train/workers/process_state.h"

#include "ostro/spmd/run_parts.h"

namespace ostro::train {
namespace {

using runtime::Buffer;

// The leader sends `bytes` to every other worker.
Status send_to_all(runtime::Collectives& c, std::span<const std::byte> bytes) {
  std::vector<int64_t> others;
  for (int64_t w = 1; w < c.size(); ++w) others.push_back(w);
  const std::vector<std::span<const std::byte>> send(others.size(), bytes);
  const std::vector<std::span<std::byte>> receive(others.size());
  return c.exchange(others, send, receive);
}

Status receive_from_leader(runtime::Collectives& c, std::span<std::byte> bytes) {
  const std::vector<int64_t> leader{0};
  const std::vector<std::span<const std::byte>> send(1);
  const std::vector<std::span<std::byte>> receive{bytes};
  return c.exchange(leader, send, receive);
}

}  // namespace

Result<State> share_state(const WorkerPlan& plan, runtime::Collectives& c, const State& state) {
  if (c.rank() == 0) {
    for (const auto* part : {&state.params, &state.first_moment, &state.second_moment})
      for (const Buffer& b : *part) RETURN_IF_ERROR(send_to_all(c, b.bytes()));
    return state;
  }
  State mine;
  for (auto* part : {&mine.params, &mine.first_moment, &mine.second_moment})
    for (size_t k = 0; k < plan.n; ++k) {
      part->push_back(Buffer::empty(plan.shape(k)));
      RETURN_IF_ERROR(receive_from_leader(c, part->back().mutable_bytes()));
    }
  return mine;
}

Status collect_moments(const WorkerPlan& plan, runtime::Collectives& c, const Worker& worker, State& state) {
  const bool leader = c.rank() == 0;
  if (!leader && !worker.owner()) return Status();
  std::vector<int64_t> peers;  // whom this worker exchanges with
  for (int64_t o = 1; leader && o < plan.owners(); ++o) peers.push_back(o);
  if (!leader) peers.push_back(0);
  for (const bool first : {true, false}) {
    const std::vector<Buffer>& cells = first ? worker.first_moment() : worker.second_moment();
    std::vector<Buffer>& whole = first ? state.first_moment : state.second_moment;
    if (leader) whole.clear();
    for (size_t k = 0; k < plan.n; ++k) {
      std::vector<Buffer> parts;
      std::vector<std::span<const std::byte>> send(peers.size());
      std::vector<std::span<std::byte>> receive(peers.size());
      if (leader) {
        for (const int64_t o : peers) parts.push_back(Buffer::empty(plan.local_shape(k, o)));
        for (size_t i = 0; i < peers.size(); ++i) receive[i] = parts[i].mutable_bytes();
      } else {
        send[0] = cells[k].bytes();
      }
      RETURN_IF_ERROR(c.exchange(peers, send, receive));
      if (!leader) continue;
      parts.insert(parts.begin(), cells[k]);
      ASSIGN_OR_RETURN(Buffer b, spmd::join(plan.update.mesh, plan.layout(k), plan.shape(k), parts));
      whole.push_back(std::move(b));
    }
  }
  return Status();
}

}  // namespace ostro::train
