#include "ostro/fleet/workers/slice_exchange.h"

#include <algorithm>
#include <deque>
#include <map>
#include <span>

#include "ostro/base/check.h"
#include "ostro/fleet/exchange/cell_messages.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::fleet {
namespace {

using runtime::Buffer;

// The slices of the peers, numbered anew without those that have none of them.
std::vector<int64_t> slices_of_peers(const WorkerPlan& plan, const std::vector<int64_t>& peers) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < peers.size(); ++i)
    out.push_back(i == 0 ? 0 : out.back() + (plan.slices.apart(peers[i - 1], peers[i]) ? 1 : 0));
  return out;
}

// By array and place: the part that the worker owns. Parts are numbered in the order of their first owners.
std::vector<std::vector<int64_t>> parts_of_peers(const WorkerPlan& plan, const std::vector<int64_t>& peers) {
  std::vector<std::vector<int64_t>> out(plan.n);
  for (size_t k = 0; k < plan.n; ++k) {
    std::map<std::vector<int64_t>, int64_t> numbers;
    for (const int64_t rank : peers) {
      std::vector<int64_t> at;
      for (const spmd::Split& s : plan.cut(k))
        if (s.split()) at.push_back(spmd::coordinate(plan.mesh(), rank, s.mesh_axis));
      out[k].push_back(numbers.emplace(std::move(at), static_cast<int64_t>(numbers.size())).first->second);
    }
  }
  return out;
}

SliceRoutes routes_of(const WorkerPlan& plan, const std::vector<int64_t>& peers) {
  return {slices_of_peers(plan, peers), parts_of_peers(plan, peers)};
}

bool is_whole(const spmd::Layout& cut) {
  return std::none_of(cut.begin(), cut.end(), [](const spmd::Split& s) { return s.split(); });
}

}  // namespace

SliceExchange::SliceExchange(const WorkerPlan& plan, int64_t rank)
    : plan_(plan),
      peers_(plan.leaf_peers(rank)),
      place_(std::find(peers_.begin(), peers_.end(), rank) - peers_.begin()),
      routes_(routes_of(plan, peers_)),
      slice_(routes_.slice_of(place_)),
      add_slice_(*plan.engine),
      add_main_(*plan.engine) {
  each_part([&](const Part& p) {
    if (!joins(p)) return;
    joined_.push_back(p);
    if (owns(p)) kept_.push_back(p);
    if (main_slice(p) == slice_) main_.push_back(p);
  });
}

std::vector<train::Subtree> SliceExchange::subtrees_of_place(int64_t leaves, int64_t place) const {
  return train::subtrees(leaves, plan_.leaves_at(place, leaves));
}

std::vector<train::Subtree> SliceExchange::subtrees_of_slice(int64_t leaves, int64_t slice) const {
  const std::vector<int64_t>& members = routes_.members(slice);
  return train::subtrees(
      leaves, {plan_.leaves_at(members.front(), leaves).begin, plan_.leaves_at(members.back(), leaves).end});
}

// Messages of a pair are added by both of its workers in the order of array, part and subtree.
Result<CellBuffers> SliceExchange::join_whole(runtime::Collectives& c, int64_t leaves, SubtreeSums& mine) {
  std::vector<CellBuffers> sums;
  for (const auto& [node, sum] : mine.sums()) {
    ASSIGN_OR_RETURN(sums.emplace_back(), runtime::all_to(sum, runtime::host_memory()));
  }
  const std::vector<int64_t>& mates = routes_.members(slice_);
  std::vector<std::vector<train::Subtree>> nodes;
  std::vector<std::vector<CellBuffers>> received(mates.size());
  std::deque<Buffer> copies;  // of cells that do not lie together
  CellMessages messages;
  for (size_t m = 0; m < mates.size(); ++m) {
    const int64_t mate = mates[m];
    nodes.push_back(subtrees_of_place(leaves, mate));
    received[m].resize(nodes[m].size());
    each_part([&](const Part& p) {
      const spmd::Layout& cut = plan_.cut(p.k);
      if (mate == place_ && joins(p)) {
        for (size_t i = 0; i < sums.size(); ++i)
          received[m][i].push_back(is_whole(cut) ? mine.sums()[i].second[p.k]
                                                 : spmd::shard(plan_.mesh(), owner(p), cut, sums[i][p.k]));
      } else if (mate != place_ && joins(p)) {
        for (CellBuffers& sum : received[m])
          messages.add(rank_of(mate), {}, sum.emplace_back(Buffer::empty(shape(p))).mutable_bytes());
      } else if (mate != place_ && routes_.joiner(p.k, p.q, slice_) == mate) {
        for (const CellBuffers& sum : sums) {
          const auto bytes = cells_together(plan_.mesh(), owner(p), cut, sum[p.k]);
          messages.add(rank_of(mate),
                       bytes
                           ? *bytes
                           : copies.emplace_back(spmd::shard(plan_.mesh(), owner(p), cut, sum[p.k])).bytes(),
                       {});
        }
      }
    });
  }
  RETURN_IF_ERROR(messages.run(c));
  mine.clear();
  sums.clear();
  SubtreeSums slice(leaves, add_slice_);
  for (size_t m = 0; m < mates.size(); ++m)
    for (size_t i = 0; i < nodes[m].size(); ++i)
      RETURN_IF_ERROR(slice.push(nodes[m][i], std::move(received[m][i])));
  return across(c, leaves, slice.sums());
}

Result<CellBuffers> SliceExchange::join_owned(runtime::Collectives& c, int64_t leaves, SubtreeSums& slice) {
  Sums sums;
  for (const auto& [node, owned] : slice.sums()) {
    CellBuffers parts;
    for (const Part& p : joined_) {
      OSTRO_CHECK(owns(p), "a slice does not own part {} of array {}", p.q, p.k);
      parts.push_back(owned[p.k]);
    }
    sums.emplace_back(node, std::move(parts));
  }
  slice.clear();
  return across(c, leaves, sums);
}

// `slice`: the sums of this slice's subtrees, of the parts that this worker joins.
Result<CellBuffers> SliceExchange::across(runtime::Collectives& c, int64_t leaves, const Sums& slice) {
  std::vector<CellBuffers> sums;
  for (const auto& [node, sum] : slice) {
    ASSIGN_OR_RETURN(sums.emplace_back(), runtime::all_to(sum, runtime::host_memory()));
  }
  const auto slices = static_cast<size_t>(routes_.slices());
  std::vector<std::vector<train::Subtree>> nodes;
  std::vector<std::vector<CellBuffers>> received(slices);
  CellMessages messages;
  for (size_t s = 0; s < slices; ++s) {
    const auto other = static_cast<int64_t>(s);
    nodes.push_back(subtrees_of_slice(leaves, other));
    received[s].resize(nodes[s].size());
    for (size_t x = 0; x < joined_.size(); ++x) {
      const Part& p = joined_[x];
      const int64_t main = main_slice(p), peer = rank_of(routes_.joiner(p.k, p.q, other));
      if (main == slice_ && other == slice_) {
        for (size_t i = 0; i < sums.size(); ++i) received[s][i].push_back(slice[i].second[x]);
      } else if (main == slice_) {
        for (CellBuffers& sum : received[s])
          messages.add(peer, {}, sum.emplace_back(Buffer::empty(shape(p))).mutable_bytes());
      } else if (main == other) {
        for (const CellBuffers& sum : sums) messages.add(peer, sum[x].bytes(), {});
      }
    }
  }
  RETURN_IF_ERROR(messages.run(c));
  SubtreeSums all(leaves, add_main_);
  for (size_t s = 0; s < slices; ++s)
    for (size_t i = 0; i < nodes[s].size(); ++i)
      RETURN_IF_ERROR(all.push(nodes[s][i], std::move(received[s][i])));
  return send_back(c, all.root());
}

// `joined`: the sums over all leaves of the parts that this worker joins for all slices. They go to the
// joiners of the other slices that own these parts.
Result<CellBuffers> SliceExchange::send_back(runtime::Collectives& c, CellBuffers joined) const {
  ASSIGN_OR_RETURN(const CellBuffers on_host, runtime::all_to(joined, runtime::host_memory()));
  CellBuffers owned(plan_.trained);
  CellMessages messages;
  size_t x = 0;
  for (const Part& p : joined_) {
    const int64_t main = main_slice(p);
    if (main == slice_) {
      owned[p.k] = joined[x];
      for (const int64_t other : routes_.owning_slices(p.k, p.q))
        if (other != slice_) messages.add(rank_of(routes_.joiner(p.k, p.q, other)), on_host[x].bytes(), {});
      ++x;
    } else if (owns(p)) {
      owned[p.k] = Buffer::empty(shape(p));
      messages.add(rank_of(routes_.joiner(p.k, p.q, main)), {}, owned[p.k].mutable_bytes());
    }
  }
  RETURN_IF_ERROR(messages.run(c));
  return hand_out(c, std::move(owned));
}

// `owned`: the sums over all leaves of the parts that this worker joins and owns, by array. They go to the
// other owners in the slice.
Result<CellBuffers> SliceExchange::hand_out(runtime::Collectives& c, CellBuffers owned) const {
  CellMessages messages;
  std::deque<Buffer> on_host;
  for (const int64_t mate : routes_.members(slice_)) {
    if (mate == place_) continue;
    for (size_t k = 0; k < plan_.trained; ++k) {
      const int64_t own = routes_.part_of(k, place_), theirs = routes_.part_of(k, mate);
      std::span<const std::byte> out;
      std::span<std::byte> in;
      if (own == theirs && routes_.joiner(k, own, slice_) == place_) {
        ASSIGN_OR_RETURN(const Buffer sum, owned[k].to_host());
        out = on_host.emplace_back(sum).bytes();
      } else if (own == theirs && routes_.joiner(k, own, slice_) == mate) {
        owned[k] = Buffer::empty(plan_.owned_shape(k, rank_of(place_)));
        in = owned[k].mutable_bytes();
      }
      if (!out.empty() || !in.empty()) messages.add(rank_of(mate), out, in);
    }
  }
  RETURN_IF_ERROR(messages.run(c));
  return owned;
}

Result<std::vector<Bytes>> SliceExchange::spread(runtime::Collectives& c, const Bytes& mine,
                                                 const std::vector<size_t>& expected) const {
  std::vector<Bytes> received;
  for (const size_t size : expected) received.emplace_back(size);
  received[static_cast<size_t>(place_)] = mine;
  CellMessages direct;  // to the others of the slice, and to one worker of each other slice
  for (size_t w = 0; w < peers_.size(); ++w) {
    const auto place = static_cast<int64_t>(w);
    if (place == place_) continue;
    const int64_t slice = routes_.slice_of(place);
    const bool near = slice == slice_;
    const bool sends = near || routes_.receiver(place_, slice) == place;
    const bool gets = near || routes_.receiver(place, slice_) == place_;
    if (sends || gets)
      direct.add(rank_of(place), sends ? std::span<const std::byte>(mine) : std::span<const std::byte>(),
                 gets ? std::span<std::byte>(received[w]) : std::span<std::byte>());
  }
  RETURN_IF_ERROR(direct.run(c));
  CellMessages passed_on;
  for (size_t w = 0; w < peers_.size(); ++w) {
    const auto place = static_cast<int64_t>(w);
    if (routes_.slice_of(place) == slice_) continue;
    const int64_t receiver = routes_.receiver(place, slice_);
    if (receiver != place_) {
      passed_on.add(rank_of(receiver), {}, received[w]);
      continue;
    }
    for (const int64_t mate : routes_.members(slice_))
      if (mate != place_) passed_on.add(rank_of(mate), received[w], {});
  }
  RETURN_IF_ERROR(passed_on.run(c));
  return received;
}

}  // namespace ostro::fleet
