#include "ostro/fleet/workers/cell_exchange.h"

#include <algorithm>
#include <deque>

#include "ostro/fleet/exchange/cell_messages.h"

namespace ostro::fleet {
namespace {

using runtime::Buffer;

}  // namespace

Result<std::vector<std::vector<CellBuffers>>> exchange_cells(const WorkerPlan& plan, runtime::Collectives& c,
                                                             const std::vector<int64_t>& peers,
                                                             const std::vector<const CellBuffers*>& sums,
                                                             const std::vector<size_t>& counts) {
  std::vector<CellBuffers> on_host;  // the sums
  for (const CellBuffers* sum : sums) {
    ASSIGN_OR_RETURN(on_host.emplace_back(), runtime::all_to(*sum, runtime::host_memory()));
  }
  std::vector<std::vector<CellBuffers>> received(peers.size());
  std::deque<Buffer> copies;  // of cells that do not lie together
  CellMessages messages;
  for (size_t w = 0; w < peers.size(); ++w) {
    const bool self = peers[w] == c.rank();
    received[w].resize(counts[w]);
    for (size_t i = 0; i < std::max(sums.size(), counts[w]); ++i)
      for (size_t k = 0; k < plan.trained; ++k) {
        const spmd::Layout cut = plan.cut(k);
        if (self) {
          const bool whole = std::none_of(cut.begin(), cut.end(), [](const auto& s) { return s.split(); });
          received[w][i].push_back(whole ? (*sums[i])[k]
                                         : spmd::shard(plan.mesh(), peers[w], cut, on_host[i][k]));
          continue;
        }
        std::span<const std::byte> out;
        std::span<std::byte> in;
        if (i < sums.size()) {
          const Buffer& sum = on_host[i][k];
          if (const auto bytes = cells_together(plan.mesh(), peers[w], cut, sum))
            out = *bytes;
          else
            out = copies.emplace_back(spmd::shard(plan.mesh(), peers[w], cut, sum)).bytes();
        }
        if (i < counts[w])
          in = received[w][i].emplace_back(Buffer::empty(plan.owned_shape(k, c.rank()))).mutable_bytes();
        messages.add(peers[w], out, in);
      }
  }
  RETURN_IF_ERROR(messages.run(c));
  return received;
}

Result<CellBuffers> gather_cells(const WorkerPlan& plan, runtime::Collectives& c, const CellBuffers& owned) {
  CellBuffers whole = owned;
  if (plan.gather_axes.empty()) return whole;
  ASSIGN_OR_RETURN(const CellBuffers own, runtime::all_to(owned, runtime::host_memory()));
  struct Copy {
    int64_t peer;
    size_t k;
    Buffer part;
  };
  std::deque<Copy> copies;  // of cells that do not lie together
  CellMessages messages;
  for (size_t k = 0; k < plan.n; ++k)
    if (plan.gathered(k)) whole[k] = Buffer::empty(plan.used_shape(k, c.rank()));
  for (const int64_t peer : plan.mesh().peers(c.rank(), plan.gather_axes))
    for (size_t k = 0; k < plan.n; ++k) {
      if (!plan.gathered(k)) continue;
      const spmd::Layout cut = plan.cut(k);
      if (peer == c.rank()) {
        spmd::place(plan.mesh(), peer, cut, own[k], whole[k]);
        continue;
      }
      std::span<std::byte> in;
      if (const auto offset = spmd::part_offset(plan.mesh(), peer, cut, whole[k].shape()))
        in = whole[k].mutable_bytes().subspan(static_cast<size_t>(*offset),
                                              static_cast<size_t>(plan.owned_shape(k, peer).bytes()));
      else
        in =
            copies.emplace_back(Copy{peer, k, Buffer::empty(plan.owned_shape(k, peer))}).part.mutable_bytes();
      messages.add(peer, own[k].bytes(), in);
    }
  RETURN_IF_ERROR(messages.run(c));
  for (const Copy& copy : copies)
    spmd::place(plan.mesh(), copy.peer, plan.cut(copy.k), copy.part, whole[copy.k]);
  return runtime::all_to(std::move(whole), plan.engine->memory());
}

}  // namespace ostro::fleet
