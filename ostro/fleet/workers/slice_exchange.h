// SliceExchange: the exchanges of a step that grow with the model, for workers in several slices: inside
// slices first, then between them, so that slow links carry what one worker for each slice would send
// (docs/spec/spmd.md, "Slices").
//
// All workers that run different leaves of a batch call the same function at the same time. Errors: those of
// the collectives and of the engine. Not thread-safe.
#pragma once

#include <utility>
#include <vector>

#include "ostro/fleet/exchange/gradient_sums.h"
#include "ostro/fleet/exchange/messages.h"
#include "ostro/fleet/slices/slice_routes.h"
#include "ostro/fleet/workers/cell_exchange.h"

namespace ostro::fleet {

class SliceExchange {
 public:
  // `plan` must outlive it.
  SliceExchange(const WorkerPlan& plan, int64_t rank);

  // Joins the gradients of all workers. `mine`: the sums of this worker's leaves, whole arrays; it is
  // cleared. Returns the sums over all leaves of the cells that this worker owns.
  Result<CellBuffers> join_whole(runtime::Collectives& c, int64_t leaves, SubtreeSums& mine);
  // The same where `slice` has the sums over the leaves of this worker's slice, of the cells that it owns.
  // Every slice must own every cell (WorkerPlan::rounds_in_slices).
  Result<CellBuffers> join_owned(runtime::Collectives& c, int64_t leaves, SubtreeSums& slice);

  // Returns the parameters as the leaf program reads them, from the cells `owned` of this worker and those of
  // the others. What a worker of a slice has as copies is not sent to that slice (but see copied_at):
  // `copies` are those of this worker (GradientSchedule::gradients).
  Result<CellBuffers> gather(runtime::Collectives& c, const CellBuffers& owned,
                             const CellBuffers& copies) const;

  // The worker from which `to` gets the part of array k that worker `of` owns; `to` itself if it has it.
  int64_t source(size_t k, int64_t of, int64_t to) const;

  // Sends a message to all workers, and returns theirs, by place; expected[w]: the bytes of that of place w.
  Result<std::vector<Bytes>> spread(runtime::Collectives& c, const Bytes& mine,
                                    const std::vector<size_t>& expected) const;

  // Add to `load` what this worker sends, and the most gradients that it holds at a time: in join_whole or
  // join_owned, in gather, and in spread of messages of these sizes.
  void add_joins(int64_t leaves, bool whole, train::WorkerLoad& load) const;
  void add_gather(train::WorkerLoad& load) const;
  void add_spread(const std::vector<int64_t>& sizes, const std::string& what, train::WorkerLoad& load) const;

 private:
  // Part q of array k.
  struct Part {
    size_t k = 0;
    int64_t q = 0;
  };
  using Sums = std::vector<std::pair<train::Subtree, CellBuffers>>;
  class Gathering;

  std::vector<train::Subtree> subtrees_of_place(int64_t leaves, int64_t place) const;
  std::vector<train::Subtree> subtrees_of_slice(int64_t leaves, int64_t slice) const;
  int64_t rank_of(int64_t place) const { return peers_[static_cast<size_t>(place)]; }
  // A worker that owns the part, and so has its cut.
  int64_t owner(const Part& p) const { return rank_of(routes_.first_owner(p.k, p.q)); }
  ir::Shape shape(const Part& p) const { return plan_.owned_shape(p.k, owner(p)); }
  // The place in `slice` of the worker whose copies of the part are read there, if it has no owner there; -1:
  // there is none. With trainer.cross_check copies are not read: they are what owners are compared with.
  int64_t copied_at(const Part& p, int64_t slice) const;
  // The place in `slice` of the worker that has the part first and sends it to the others there.
  int64_t giver(const Part& p, int64_t slice) const {
    const int64_t copied = copied_at(p, slice);
    return copied >= 0 ? copied : routes_.joiner(p.k, p.q, slice);
  }
  // Whether it gets the part from another slice.
  bool comes_from_afar(const Part& p, int64_t slice) const {
    return !routes_.owned_in(p.k, p.q, slice) && copied_at(p, slice) < 0;
  }
  int64_t bytes(const std::vector<Part>& parts) const;
  bool joins(const Part& p) const { return routes_.joiner(p.k, p.q, slice_) == place_; }
  bool owns(const Part& p) const { return routes_.part_of(p.k, place_) == p.q; }
  int64_t main_slice(const Part& p) const { return routes_.main_slice(p.k, p.q); }
  template <typename Visit>  // visit(Part) for all parts of arrays that are trained
  void each_part(const Visit& visit) const {
    for (size_t k = 0; k < plan_.trained; ++k)
      for (int64_t q = 0; q < routes_.parts(k); ++q) visit(Part{k, q});
  }

  Result<CellBuffers> across(runtime::Collectives& c, int64_t leaves, const Sums& slice);
  Result<CellBuffers> send_back(runtime::Collectives& c, CellBuffers joined) const;
  Result<CellBuffers> hand_out(runtime::Collectives& c, CellBuffers owned) const;

  const WorkerPlan& plan_;
  std::vector<int64_t> peers_;  // by place
  int64_t place_ = 0;
  SliceRoutes routes_;
  int64_t slice_;
  std::vector<Part> joined_;  // the parts that this worker joins
  std::vector<Part> kept_;    // those of them that it owns
  std::vector<Part> main_;    // those of them that it joins for all slices
  GradientAdder add_slice_, add_main_;
};

}  // namespace ostro::fleet
