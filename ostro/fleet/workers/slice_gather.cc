// SliceExchange::gather, and what its exchanges send and hold, as numbers.
#include <algorithm>
#include <map>
#include <span>

#include "ostro/base/check.h"
#include "ostro/fleet/exchange/cell_messages.h"
#include "ostro/fleet/exchange/collective_bytes.h"
#include "ostro/fleet/workers/slice_exchange.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::fleet {

using runtime::Buffer;

// The whole parameters of one worker while their parts arrive.
class SliceExchange::Gathering {
 public:
  Gathering(const WorkerPlan& plan, CellBuffers& whole) : plan_(plan), whole_(whole) {}

  // The place for the part that worker `owner` owns: in the whole array, if its bytes lie together there.
  std::span<std::byte> span(const Part& p, int64_t owner) {
    const ir::Shape shape = plan_.owned_shape(p.k, owner);
    if (const auto offset = spmd::part_offset(plan_.mesh(), owner, plan_.cut(p.k), whole_[p.k].shape()))
      return whole_[p.k].mutable_bytes().subspan(static_cast<size_t>(*offset),
                                                 static_cast<size_t>(shape.bytes()));
    const auto [copy, is_new] = copies_.try_emplace({p.k, p.q});
    if (is_new) copy->second = {owner, Buffer::empty(shape)};
    return copy->second.second.mutable_bytes();
  }
  // Puts all parts into their places.
  void finish() {
    for (const auto& [part, copy] : copies_)
      spmd::place(plan_.mesh(), copy.first, plan_.cut(part.first), copy.second, whole_[part.first]);
  }

 private:
  const WorkerPlan& plan_;
  CellBuffers& whole_;
  std::map<std::pair<size_t, int64_t>, std::pair<int64_t, Buffer>> copies_;
};

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

// Messages of a pair are added by both of its workers in the order of array and part.
Result<CellBuffers> SliceExchange::gather(runtime::Collectives& c, const CellBuffers& owned,
                                          const CellBuffers& copies) const {
  CellBuffers whole = owned;
  if (plan_.gather_axes.empty()) return whole;
  ASSIGN_OR_RETURN(const CellBuffers own, runtime::all_to(owned, runtime::host_memory()));
  ASSIGN_OR_RETURN(const CellBuffers copied, runtime::all_to(copies, runtime::host_memory()));
  const int64_t rank = rank_of(place_);
  Gathering parts(plan_, whole);
  CellMessages between, inside;
  std::vector<Part> all;
  for (size_t k = 0; k < plan_.n; ++k) {
    if (!plan_.gathered(k)) continue;
    whole[k] = Buffer::empty(plan_.used_shape(k, rank));
    spmd::place(plan_.mesh(), rank, plan_.cut(k), own[k], whole[k]);
    for (int64_t q = 0; q < routes_.parts(k); ++q) all.push_back({k, q});
  }
  for (const Part& p : all) {
    const bool is_own = owns(p);
    const int64_t from = routes_.joiner(p.k, p.q, main_slice(p));
    const int64_t here = giver(p, slice_);
    if (from == place_)
      for (int64_t slice = 0; slice < routes_.slices(); ++slice)
        if (comes_from_afar(p, slice)) between.add(rank_of(giver(p, slice)), own[p.k].bytes(), {});
    if (here != place_) {
      if (!is_own) inside.add(rank_of(here), {}, parts.span(p, owner(p)));
      continue;
    }
    std::span<const std::byte> bytes = own[p.k].bytes();
    if (comes_from_afar(p, slice_)) {
      const std::span<std::byte> span = parts.span(p, owner(p));
      between.add(rank_of(from), {}, span);
      bytes = span;
    } else if (!is_own) {
      const std::optional<size_t> index = plan_.mirrored_place(p.k);
      OSTRO_CHECK(index && *index < copied.size(), "a worker keeps copies of {} parameters, not of number {}",
                  copied.size(), p.k);
      const Buffer& copy = copied[*index];
      spmd::place(plan_.mesh(), owner(p), plan_.cut(p.k), copy, whole[p.k]);
      bytes = copy.bytes();
    }
    for (const int64_t mate : routes_.members(slice_))
      if (routes_.part_of(p.k, mate) != p.q && mate != place_) inside.add(rank_of(mate), bytes, {});
  }
  RETURN_IF_ERROR(between.run(c));
  RETURN_IF_ERROR(inside.run(c));
  parts.finish();
  return runtime::all_to(std::move(whole), plan_.engine->memory());
}

int64_t SliceExchange::bytes(const std::vector<Part>& parts) const {
  int64_t sum = 0;
  for (const Part& p : parts) sum += shape(p).bytes();
  return sum;
}

void SliceExchange::add_joins(int64_t leaves, bool whole, train::WorkerLoad& load) const {
  const auto mine = static_cast<int64_t>(subtrees_of_place(leaves, place_).size());
  const auto of_slice = static_cast<int64_t>(subtrees_of_slice(leaves, slice_).size());
  const int64_t joined = bytes(joined_), kept = bytes(kept_), main = bytes(main_);
  int64_t to_joiners = 0, packed = 0, from_mates = 0, to_owners = 0;
  for (const int64_t mate : routes_.members(slice_)) {
    from_mates += static_cast<int64_t>(subtrees_of_place(leaves, mate).size()) * joined;
    for (size_t k = 0; mate != place_ && k < plan_.trained; ++k)
      if (const int64_t q = routes_.part_of(k, mate);
          q == routes_.part_of(k, place_) && routes_.joiner(k, q, slice_) == place_)
        to_owners += shape({k, q}).bytes();
  }
  each_part([&](const Part& p) {
    if (joins(p)) return;
    to_joiners += mine * shape(p).bytes();
    if (!spmd::part_offset(plan_.mesh(), owner(p), plan_.cut(p.k), plan_.used_shape(p.k, rank_of(place_))))
      packed += mine * shape(p).bytes();
  });
  int64_t between = 0, from_slices = 0;
  for (int64_t slice = 0; slice < routes_.slices(); ++slice)
    from_slices += static_cast<int64_t>(subtrees_of_slice(leaves, slice).size()) * main;
  for (const Part& p : joined_)
    between += main_slice(p) != slice_
                   ? of_slice * shape(p).bytes()
                   : (static_cast<int64_t>(routes_.owning_slices(p.k, p.q).size()) - 1) * shape(p).bytes();
  if (whole) {
    load.gradients = std::max(load.gradients, mine * plan_.used_bytes(rank_of(place_)) + packed + from_mates);
    add_sent(load.sent, "sums of gradients to the workers of the slice that join them", 1, to_joiners);
  }
  load.gradients = std::max(load.gradients, of_slice * joined + std::max(from_slices, main + kept));
  add_sent(load.sent, "sums of gradients to other slices", 1, between, between);
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
