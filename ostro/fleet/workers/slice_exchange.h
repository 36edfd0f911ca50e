// SliceExchange: the exchanges of a step that grow with the model, for workers in several slices: inside
// slices first, then between them, so that slow links carry what one worker for each slice would send
// (docs/spec/spmd.md, "Slices").
//
// All workers that run different leaves of a batch call the same function at the same time. Errors: those of
// the collectives and of the engine. Not thread-safe.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "ostro/fleet/exchange/cell_messages.h"
#include "ostro/fleet/exchange/messages.h"
#include "ostro/fleet/slices/chunks.h"
#include "ostro/fleet/slices/slice_routes.h"
#include "ostro/fleet/workers/cell_exchange.h"

namespace ostro::fleet {

class SliceExchange {
 public:
  // `plan` must outlive it.
  SliceExchange(const WorkerPlan& plan, int64_t rank);

  // Sums over subtrees of leaves, ascending.
  using Sums = std::vector<std::pair<train::Subtree, CellBuffers>>;
  // The exchanges of one step in chunks, each in two halves, between which other work is done.
  class Gather;
  class Join;

  // Joins the gradients of all workers. `mine`: the sums of this worker's leaves, whole arrays; it is
  // cleared. Returns the sums over all leaves of the cells that this worker owns.
  Result<CellBuffers> join_whole(runtime::Collectives& c, int64_t leaves, SubtreeSums& mine);
  // The same where `slice` has the sums over the leaves of this worker's slice, of the cells that it owns.
  // Every slice must own every cell (WorkerPlan::rounds_in_slices).
  Result<CellBuffers> join_owned(runtime::Collectives& c, int64_t leaves, SubtreeSums& slice);
  // Ends what was begun by these, one for each chunk: the sums that join_whole returns.
  Result<CellBuffers> finish(runtime::Collectives& c, std::deque<Join>& joins);

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
  // Part q of array k, or of one index of its leading axis (ArrayPiece).
  struct Part {
    size_t k = 0;
    int64_t q = 0;
    int64_t row = -1;
  };

  std::vector<train::Subtree> subtrees_of_place(int64_t leaves, int64_t place) const;
  std::vector<train::Subtree> subtrees_of_slice(int64_t leaves, int64_t slice) const;
  int64_t rank_of(int64_t place) const { return peers_[static_cast<size_t>(place)]; }
  // A worker that owns the part, and so has its cut.
  int64_t owner(const Part& p) const { return rank_of(routes_.first_owner(p.k, p.q)); }
  ir::Shape shape(const Part& p) const;
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
  // Whether the sum of this subtree goes to other slices in bf16, which has its value
  // (numerics.slice_partials).
  bool narrow(int64_t leaves, const train::Subtree& node) const {
    return train::is_rounded(leaves, plan_.options.slice_partials, node);
  }
  bool joins(const Part& p) const { return routes_.joiner(p.k, p.q, slice_) == place_; }
  bool owns(const Part& p) const { return routes_.part_of(p.k, place_) == p.q; }
  int64_t main_slice(const Part& p) const { return routes_.main_slice(p.k, p.q); }
  template <typename Visit>  // visit(Part) for all parts of arrays that are trained
  void each_part(const Visit& visit) const {
    for (size_t k = 0; k < plan_.trained; ++k)
      for (int64_t q = 0; q < routes_.parts(k); ++q) visit(Part{k, q});
  }

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

// The view of an array that a piece is.
inline runtime::Buffer piece_of(const runtime::Buffer& array, int64_t row) {
  return row < 0 ? array : array.rows(row, 1);
}

// The gathering of parameters.
class SliceExchange::Gather {
 public:
  // `exchange` and `c` must outlive it. `in_background`: false: start() and finish() do whole exchanges.
  Gather(const SliceExchange& exchange, runtime::Collectives& c, bool in_background)
      : e_(exchange), c_(c), in_background_(in_background) {}

  // Sends this worker's cells to other slices. Returns when all is on its way.
  Status start(const CellBuffers& owned, const CellBuffers& copies, const Chunks& chunks);
  // Waits for the first `chunks` chunks, passes them on in the slice, and puts them into whole().
  Status finish(size_t chunks);
  Status finish() { return finish(chunks_.size()); }
  // The parameters, on the host where they are gathered.
  const CellBuffers& whole() const { return whole_; }

 private:
  struct Chunk {
    struct Copy {  // of cells that do not lie together in the whole array
      Part part;
      runtime::Buffer cells;
    };
    std::deque<Copy> copies;  // before the messages, which must have landed when it is freed
    CellsOnTheirWay between, inside;
  };
  void add(Chunk& chunk, const Part& p);
  std::span<std::byte> room(Chunk& chunk, const Part& p);

  const SliceExchange& e_;
  runtime::Collectives& c_;
  const bool in_background_;
  CellBuffers whole_, own_, copied_;
  std::deque<Chunk> chunks_;
  size_t done_ = 0;
};

// The joining of the gradients of one chunk.
class SliceExchange::Join {
 public:
  // As of Gather.
  Join(const SliceExchange& exchange, int64_t leaves, const std::vector<ArrayPiece>& pieces,
       bool in_background);

  // Sends the sums of this worker's leaves to the workers of its slice that join them. mine[i].second[x]:
  // piece x.
  Status start(runtime::Collectives& c, Sums mine);
  // Waits for those of the others, joins them, and sends the sums to other slices.
  Status pass_on(runtime::Collectives& c, GradientAdder& adder);
  // Begins with the sums of the slice. slice[i].second[x]: part x of those that this worker joins.
  Status start_between(runtime::Collectives& c, Sums slice);
  // Waits for those of other slices. Returns the sums over all leaves of main().
  Result<CellBuffers> finish(GradientAdder& adder);

 private:
  friend SliceExchange;
  struct Place {
    Part part;
    size_t piece;  // its place among the pieces
  };

  const SliceExchange& e_;
  const int64_t leaves_;
  const bool in_background_;
  std::vector<Place> parts_;
  std::vector<Part> joined_, main_;                      // of its parts, as those of SliceExchange
  std::vector<std::vector<train::Subtree>> near_, far_;  // of the workers of the slice, and of all slices
  std::vector<std::vector<CellBuffers>> from_near_, from_far_;  // by worker or slice, and subtree
  // What is sent must stay until it has landed, so it comes before the messages.
  Sums mine_, slice_;
  std::vector<CellBuffers> on_host_;
  std::deque<runtime::Buffer> copies_;  // of cells that do not lie together, and narrow ones
  CellsOnTheirWay inside_, between_;
};

}  // namespace ostro::fleet
