// SliceExchange::gather, and what its exchanges send and hold, as numbers.
#include <algorithm>
#include <span>

#include "ostro/base/check.h"
#include "ostro/fleet/exchange/collective_bytes.h"
#include "ostro/fleet/workers/slice_exchange.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::fleet {

using runtime::Buffer;

int64_t SliceExchange::copied_at(const Part& p, int64_t slice) const {
  if (plan_.options.check.on()) return -1;
  if (plan_.holders.empty() || !plan_.state.owned_once[p.k] || routes_.owned_in(p.k, p.q, slice)) return -1;
  const int64_t holder = plan_.holders[static_cast<size_t>(owner(p))];
  const auto at = std::lower_bound(peers_.begin(), peers_.end(), holder);
  if (at == peers_.end() || *at != holder) return -1;  // it runs no other leaves
  const int64_t place = at - peers_.begin();
  return routes_.slice_of(place) == slice ? place : -1;
}

int64_t SliceExchange::source(size_t k, int64_t of, int64_t to) const {
  const auto place_of = [&](int64_t rank) {
    return std::lower_bound(peers_.begin(), peers_.end(), rank) - peers_.begin();
  };
  const Part p{k, routes_.part_of(k, place_of(of))};
  const int64_t place = place_of(to), slice = routes_.slice_of(place), here = giver(p, slice);
  if (routes_.part_of(k, place) == p.q) return to;
  if (here != place) return rank_of(here);
  return comes_from_afar(p, slice) ? rank_of(routes_.joiner(p.k, p.q, main_slice(p))) : to;
}

Status SliceExchange::Gather::start(const CellBuffers& owned, const CellBuffers& copies,
                                    const Chunks& chunks) {
  const WorkerPlan& plan = e_.plan_;
  whole_ = owned;
  if (plan.gather_axes.empty()) return Status();
  ASSIGN_OR_RETURN(own_, runtime::all_to(owned, runtime::host_memory()));
  ASSIGN_OR_RETURN(copied_, runtime::all_to(copies, runtime::host_memory()));
  const int64_t rank = e_.rank_of(e_.place_);
  for (size_t k = 0; k < plan.n; ++k) {
    if (!plan.gathered(k)) continue;
    whole_[k] = Buffer::empty(plan.used_shape(k, rank));
    spmd::place(plan.mesh(), rank, plan.cut(k), own_[k], whole_[k]);
  }
  for (size_t i = 0; i < chunks.size(); ++i) {
    Chunk& chunk = chunks_.emplace_back();
    for (const ArrayPiece& piece : chunks[i])
      for (int64_t q = 0; plan.gathered(piece.k) && q < e_.routes_.parts(piece.k); ++q)
        add(chunk, {piece.k, q, piece.row});
  }
  for (Chunk& chunk : chunks_) RETURN_IF_ERROR(chunk.between.start(c_, in_background_));
  return Status();
}

Status SliceExchange::Gather::finish(size_t chunks) {
  for (; done_ < std::min(chunks, chunks_.size()); ++done_) {
    Chunk& chunk = chunks_[done_];
    RETURN_IF_ERROR(chunk.between.land());
    RETURN_IF_ERROR(chunk.inside.start(c_, in_background_));
    RETURN_IF_ERROR(chunk.inside.land());
    for (const Chunk::Copy& copy : chunk.copies) {
      Buffer to = piece_of(whole_[copy.part.k], copy.part.row);
      spmd::place(e_.plan_.mesh(), e_.owner(copy.part), e_.plan_.cut(copy.part.k), copy.cells, to);
    }
    chunk.copies.clear();  // not needed by leaves, which run on
  }
  return Status();
}

// The place for a part: in the whole array, if its bytes lie together there.
std::span<std::byte> SliceExchange::Gather::room(Chunk& chunk, const Part& p) {
  Buffer array = piece_of(whole_[p.k], p.row);
  const ir::Shape shape = e_.shape(p);
  if (const auto offset = spmd::part_offset(e_.plan_.mesh(), e_.owner(p), e_.plan_.cut(p.k), array.shape()))
    return array.mutable_bytes().subspan(static_cast<size_t>(*offset), static_cast<size_t>(shape.bytes()));
  return chunk.copies.emplace_back(Chunk::Copy{p, Buffer::empty(shape)}).cells.mutable_bytes();
}

// Messages of a pair are added by both of its workers in the order of array and part.
void SliceExchange::Gather::add(Chunk& chunk, const Part& p) {
  const WorkerPlan& plan = e_.plan_;
  const bool is_own = e_.owns(p);
  const int64_t from = e_.routes_.joiner(p.k, p.q, e_.main_slice(p));
  const int64_t here = e_.giver(p, e_.slice_);
  const auto own_bytes = [&] { return piece_of(own_[p.k], p.row).bytes(); };
  if (from == e_.place_)
    for (int64_t slice = 0; slice < e_.routes_.slices(); ++slice)
      if (e_.comes_from_afar(p, slice)) chunk.between.add(e_.rank_of(e_.giver(p, slice)), own_bytes(), {});
  if (here != e_.place_) {
    if (!is_own) chunk.inside.add(e_.rank_of(here), {}, room(chunk, p));
    return;
  }
  std::span<const std::byte> bytes;
  if (e_.comes_from_afar(p, e_.slice_)) {
    const std::span<std::byte> span = room(chunk, p);
    chunk.between.add(e_.rank_of(from), {}, span);
    bytes = span;
  } else if (is_own) {
    bytes = own_bytes();
  } else {
    const std::optional<size_t> index = plan.mirrored_place(p.k);
    OSTRO_CHECK(index && *index < copied_.size(), "a worker keeps copies of {} parameters, not of number {}",
                copied_.size(), p.k);
    const Buffer copy = piece_of(copied_[*index], p.row);
    Buffer to = piece_of(whole_[p.k], p.row);
    spmd::place(plan.mesh(), e_.owner(p), plan.cut(p.k), copy, to);
    bytes = copy.bytes();
  }
  for (const int64_t mate : e_.routes_.members(e_.slice_))
    if (e_.routes_.part_of(p.k, mate) != p.q && mate != e_.place_)
      chunk.inside.add(e_.rank_of(mate), bytes, {});
}

Result<CellBuffers> SliceExchange::gather(runtime::Collectives& c, const CellBuffers& owned,
                                          const CellBuffers& copies) const {
  Gather gather(*this, c, false);
  RETURN_IF_ERROR(gather.start(owned, copies, Chunks::of_whole(plan_.n)));
  RETURN_IF_ERROR(gather.finish());
  return runtime::all_to(gather.whole(), plan_.engine->memory());
}

int64_t SliceExchange::bytes(const std::vector<Part>& parts) const {
  int64_t sum = 0;
  for (const Part& p : parts) sum += shape(p).bytes();
  return sum;
}

void SliceExchange::add_joins(int64_t leaves, bool whole, train::WorkerLoad& load) const {
  const auto planned = [&](const std::vector<train::Subtree>& now) {
    return planned_subtrees(std::ssize(now), leaves, plan_.options.measured_shares);
  };
  const std::vector<train::Subtree> own = subtrees_of_place(leaves, place_),
                                    own_slice = subtrees_of_slice(leaves, slice_);
  const int64_t mine = planned(own), of_slice = planned(own_slice);
  const int64_t joined = bytes(joined_), kept = bytes(kept_), main = bytes(main_);
  int64_t to_joiners = 0, packed = 0, from_mates = 0, back = 0, to_owners = 0;
  for (const int64_t mate : routes_.members(slice_)) {
    from_mates += planned(subtrees_of_place(leaves, mate)) * joined;
    for (size_t k = 0; mate != place_ && k < plan_.trained; ++k)
      if (const int64_t q = routes_.part_of(k, mate);
          q == routes_.part_of(k, place_) && routes_.joiner(k, q, slice_) == place_)
        to_owners += shape({k, q}).bytes();
  }
  each_part([&](const Part& p) {
    if (joins(p)) return;
    to_joiners += std::ssize(own) * shape(p).bytes();
    if (!spmd::part_offset(plan_.mesh(), owner(p), plan_.cut(p.k), plan_.used_shape(p.k, rank_of(place_))))
      packed += mine * shape(p).bytes();
  });
  int64_t halves = 0;  // of a part's bytes: what the sums of this slice take on their way to another one
  for (const train::Subtree& node : own_slice) halves += narrow(leaves, node) ? 1 : 2;
  int64_t between = 0, from_slices = 0, narrowed = 0;  // narrowed: made while the f32 of a part is there
  for (int64_t slice = 0; slice < routes_.slices(); ++slice)
    from_slices += planned(subtrees_of_slice(leaves, slice)) * main;
  for (const Part& p : joined_) {
    const int64_t size = shape(p).bytes();
    if (main_slice(p) == slice_)
      back += (std::ssize(routes_.owning_slices(p.k, p.q)) - 1) * size;
    else
      between += halves * (size / 2);
    if (main_slice(p) != slice_ && plan_.options.slice_partials > 0) narrowed = std::max(narrowed, size / 2);
  }
  const int64_t joining = of_slice * joined + std::max(from_slices + narrowed, main + kept);
  if (whole) {
    load.gradients = std::max(load.gradients, mine * plan_.used_bytes(rank_of(place_)) + packed + from_mates);
    add_sent(load.sent, "sums of gradients to the workers of the slice that join them", 1, to_joiners);
  }
  // Beside the last leaf, and beside one that is computed again, sums of slices are there together with those
  // of leaves.
  const bool beside =
      whole && plan_.overlaps() && (plan_.engine->info().tells_watch || plan_.options.check.on());
  load.gradients = beside ? load.gradients + joining : std::max(load.gradients, joining);
  add_sent(load.sent, "sums of gradients to other slices", 1, between, between);
  add_sent(load.sent, "sums over all leaves to other slices", 1, back, back);
  add_sent(load.sent, "sums over all leaves to other owners in the slice", 1, to_owners);
}

void SliceExchange::add_gather(train::WorkerLoad& load) const {
  int64_t between = 0, inside = 0;
  for (size_t k = 0; k < plan_.n; ++k) {
    if (!plan_.gathered(k)) continue;
    load.gathered += plan_.used_shape(k, rank_of(place_)).bytes();
    for (int64_t q = 0; q < routes_.parts(k); ++q) {
      const Part p{k, q};
      const int64_t size = shape(p).bytes();
      if (routes_.joiner(k, q, main_slice(p)) == place_)
        for (int64_t slice = 0; slice < routes_.slices(); ++slice)
          if (comes_from_afar(p, slice)) between += size;
      if (giver(p, slice_) != place_) continue;
      for (const int64_t mate : routes_.members(slice_))
        if (routes_.part_of(k, mate) != q && mate != place_) inside += size;
    }
  }
  add_sent(load.sent, "parameters to the other slices", 1, between, between);
  add_sent(load.sent, "parameters to the other workers of the slice", 1, inside);
}

void SliceExchange::add_spread(const std::vector<int64_t>& sizes, const std::string& what,
                               train::WorkerLoad& load) const {
  const auto mates = static_cast<int64_t>(routes_.members(slice_).size()) - 1;
  const int64_t own = sizes[static_cast<size_t>(place_)], between = own * (routes_.slices() - 1);
  int64_t inside = own * mates;
  for (size_t w = 0; w < peers_.size(); ++w)
    if (const auto place = static_cast<int64_t>(w);
        routes_.slice_of(place) != slice_ && routes_.receiver(place, slice_) == place_)
      inside += sizes[w] * mates;
  add_sent(load.sent, what, 1, between + inside, between);
}

}  // namespace ostro::fleet
