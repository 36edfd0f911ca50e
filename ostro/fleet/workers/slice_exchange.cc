#include "ostro/fleet/workers/slice_exchange.h"

#include <algorithm>
#include <deque>
#include <map>
#include <span>

#include "ostro/base/check.h"
#include "ostro/fleet/exchange/narrow.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::fleet {
namespace {

using runtime::Buffer;

bool is_whole(const spmd::Layout& cut) {
  return std::none_of(cut.begin(), cut.end(), [](const spmd::Split& s) { return s.split(); });
}

}  // namespace

SliceExchange::SliceExchange(const WorkerPlan& plan, int64_t rank)
    : plan_(plan),
      peers_(plan.leaf_peers(rank)),
      place_(std::find(peers_.begin(), peers_.end(), rank) - peers_.begin()),
      routes_(routes_between(plan.slices, plan.mesh(), plan.cuts, peers_)),
      slice_(routes_.slice_of(place_)),
      add_slice_(*plan.engine, !plan.overlaps()),
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

ir::Shape SliceExchange::shape(const Part& p) const {
  ir::Shape shape = plan_.owned_shape(p.k, owner(p));
  if (p.row >= 0) shape.axes[0].size = 1;
  return shape;
}

SliceExchange::Join::Join(const SliceExchange& exchange, int64_t leaves,
                          const std::vector<ArrayPiece>& pieces, bool in_background)
    : e_(exchange), leaves_(leaves), in_background_(in_background) {
  for (size_t x = 0; x < pieces.size(); ++x)
    for (int64_t q = 0; q < e_.routes_.parts(pieces[x].k); ++q) {
      const Part p{pieces[x].k, q, pieces[x].row};
      parts_.push_back({p, x});
      if (!e_.joins(p)) continue;
      joined_.push_back(p);
      if (e_.main_slice(p) == e_.slice_) main_.push_back(p);
    }
}

// Messages of a pair are added by both of its workers in the order of array, part and subtree.
Status SliceExchange::Join::start(runtime::Collectives& c, Sums mine) {
  mine_ = std::move(mine);
  for (const auto& [node, sum] : mine_) {
    ASSIGN_OR_RETURN(on_host_.emplace_back(), runtime::all_to(sum, runtime::host_memory()));
  }
  const ir::Mesh& mesh = e_.plan_.mesh();
  const std::vector<int64_t>& mates = e_.routes_.members(e_.slice_);
  from_near_.resize(mates.size());
  for (size_t m = 0; m < mates.size(); ++m) {
    const int64_t mate = mates[m];
    near_.push_back(e_.subtrees_of_place(leaves_, mate));
    from_near_[m].resize(near_[m].size());
    for (const auto& [p, x] : parts_) {
      const spmd::Layout& cut = e_.plan_.cut(p.k);
      const int64_t owner = e_.owner(p);
      if (mate == e_.place_ && e_.joins(p)) {
        for (size_t i = 0; i < mine_.size(); ++i)
          from_near_[m][i].push_back(is_whole(cut) ? mine_[i].second[x]
                                                   : spmd::shard(mesh, owner, cut, on_host_[i][x]));
      } else if (mate != e_.place_ && e_.joins(p)) {
        for (CellBuffers& sum : from_near_[m])
          inside_.add(e_.rank_of(mate), {}, sum.emplace_back(Buffer::empty(e_.shape(p))).mutable_bytes());
      } else if (mate != e_.place_ && e_.routes_.joiner(p.k, p.q, e_.slice_) == mate) {
        for (const CellBuffers& sum : on_host_) {
          const auto bytes = cells_together(mesh, owner, cut, sum[x]);
          inside_.add(e_.rank_of(mate),
                      bytes ? *bytes : copies_.emplace_back(spmd::shard(mesh, owner, cut, sum[x])).bytes(),
                      {});
        }
      }
    }
  }
  return inside_.start(c, in_background_);
}

Status SliceExchange::Join::pass_on(runtime::Collectives& c, GradientAdder& adder) {
  RETURN_IF_ERROR(inside_.land());
  mine_.clear(), on_host_.clear(), copies_.clear();
  SubtreeSums slice(leaves_, e_.plan_.options.slice_partials, adder);
  for (size_t m = 0; m < near_.size(); ++m)
    for (size_t i = 0; i < near_[m].size(); ++i)
      RETURN_IF_ERROR(slice.push(near_[m][i], std::move(from_near_[m][i])));
  from_near_.clear();
  return start_between(c, slice.take());
}

Status SliceExchange::Join::start_between(runtime::Collectives& c, Sums slice) {
  slice_ = std::move(slice);
  for (const auto& [node, sum] : slice_) {
    ASSIGN_OR_RETURN(on_host_.emplace_back(), runtime::all_to(sum, runtime::host_memory()));
  }
  from_far_.resize(static_cast<size_t>(e_.routes_.slices()));
  for (size_t s = 0; s < from_far_.size(); ++s) {
    const auto other = static_cast<int64_t>(s);
    far_.push_back(e_.subtrees_of_slice(leaves_, other));
    from_far_[s].resize(far_[s].size());
    for (size_t x = 0; x < joined_.size(); ++x) {
      const Part& p = joined_[x];
      const int64_t main = e_.main_slice(p), peer = e_.rank_of(e_.routes_.joiner(p.k, p.q, other));
      if (main == e_.slice_ && other == e_.slice_) {
        for (size_t i = 0; i < slice_.size(); ++i) from_far_[s][i].push_back(slice_[i].second[x]);
      } else if (main == e_.slice_) {
        for (size_t i = 0; i < far_[s].size(); ++i) {
          ir::Shape shape = e_.shape(p);
          if (e_.narrow(leaves_, far_[s][i])) shape.dtype = ir::DType::bf16;
          between_.add(peer, {}, from_far_[s][i].emplace_back(Buffer::empty(shape)).mutable_bytes());
        }
      } else if (main == other) {
        for (size_t i = 0; i < on_host_.size(); ++i) {
          if (!e_.narrow(leaves_, slice_[i].first)) {
            between_.add(peer, on_host_[i][x].bytes(), {});
            continue;
          }
          between_.add(peer, copies_.emplace_back(narrowed(on_host_[i][x])).bytes(), {});
          on_host_[i][x] = slice_[i].second[x] = Buffer();  // the f32 is not read again
        }
      }
    }
  }
  return between_.start(c, in_background_);
}

Result<CellBuffers> SliceExchange::Join::finish(GradientAdder& adder) {
  RETURN_IF_ERROR(between_.land());
  slice_.clear(), on_host_.clear(), copies_.clear();
  for (std::vector<CellBuffers>& sums : from_far_)
    for (CellBuffers& sum : sums)
      for (Buffer& array : sum)
        if (array.shape().dtype == ir::DType::bf16) array = widened(array);
  SubtreeSums all(leaves_, e_.plan_.options.slice_partials, adder);
  for (size_t s = 0; s < far_.size(); ++s)
    for (size_t i = 0; i < far_[s].size(); ++i)
      RETURN_IF_ERROR(all.push(far_[s][i], std::move(from_far_[s][i])));
  return all.root();
}

// Rows of a part are put together.
Result<CellBuffers> SliceExchange::finish(runtime::Collectives& c, std::deque<Join>& joins) {
  std::map<std::pair<size_t, int64_t>, Buffer> whole;  // by array and part, in the order of main_
  for (Join& join : joins) {
    ASSIGN_OR_RETURN(const CellBuffers sums, join.finish(add_main_));
    for (size_t x = 0; x < sums.size(); ++x) {
      const Part& p = join.main_[x];
      Buffer& to = whole[{p.k, p.q}];
      if (p.row < 0) {
        to = sums[x];
        continue;
      }
      if (!to.valid()) to = Buffer::empty(shape({p.k, p.q}));
      RETURN_IF_ERROR(sums[x].read(piece_of(to, p.row).mutable_bytes()));
    }
  }
  joins.clear();
  CellBuffers joined;
  for (auto& [part, sum] : whole) joined.push_back(std::move(sum));
  return send_back(c, std::move(joined));
}

Result<CellBuffers> SliceExchange::join_whole(runtime::Collectives& c, int64_t leaves, SubtreeSums& mine) {
  std::deque<Join> joins;
  Join& join = joins.emplace_back(*this, leaves, Chunks::of_whole(plan_.trained)[0], false);
  RETURN_IF_ERROR(join.start(c, mine.take()));
  RETURN_IF_ERROR(join.pass_on(c, add_slice_));
  return finish(c, joins);
}

Result<CellBuffers> SliceExchange::join_owned(runtime::Collectives& c, int64_t leaves, SubtreeSums& slice) {
  std::deque<Join> joins;
  Join& join = joins.emplace_back(*this, leaves, Chunks::of_whole(plan_.trained)[0], false);
  Sums sums;
  for (const auto& [node, owned] : slice.sums()) {
    CellBuffers parts;
    for (const Part& p : join.joined_) {
      OSTRO_CHECK(owns(p), "a slice does not own part {} of array {}", p.q, p.k);
      parts.push_back(owned[p.k]);
    }
    sums.emplace_back(node, std::move(parts));
  }
  slice.clear();
  RETURN_IF_ERROR(join.start_between(c, std::move(sums)));
  return finish(c, joins);
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
