// Recovery: after a worker is lost, chooses the newest state that the survivors can rebuild, and which copy
// of each cell is used. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "ostro/fleet/parts/state_layout.h"
#include "ostro/fleet/workers/worker.h"

namespace ostro::fleet {

// A worker's description of the state that it brings. It is sent to all others.
struct BroughtState {
  int64_t epoch = 0;        // the epoch by which its cells were cut; 0: it brings nothing
  int64_t size = 0;         // the number of workers of that epoch; 1: the whole state
  int64_t rank = -1;        // its rank in that epoch
  int64_t mirror_of = -1;   // the rank whose cells it mirrors; -1: none
  int64_t step = 0;         // its cells are the state after this number of steps
  int64_t can_finish = 0;   // 1: it can finish the next step when it gets the measures of that step
  double leaf_seconds = 0;  // what a leaf usually takes it; 0: not known
};

struct Brought : BroughtState {
  std::vector<double> measured;  // of the last step, in the order of UpdateMeasures
};

struct Recovery {
  int64_t epoch = 0;  // the epoch whose cells are used; 0: no worker has a state
  int64_t size = 0;
  int64_t step = 0;              // the step after which the state is, when those behind have finished it
  std::vector<double> measured;  // the measures of that step, in the order of UpdateMeasures
  std::vector<bool> brings;      // by rank: its cells are used
  std::vector<bool> behind;      // by rank: it finishes the step first
};

// Chooses the cells of the newest epoch, after the last step that a worker of it has finished. The cells of a
// worker that is one step behind are used when it can finish that step. Every worker computes the same
// result, from the same descriptions.
Recovery plan_recovery(const std::vector<Brought>& brought);

// Makes the workers in `brought` bring no copies of cells whose owner brings them, too: where only a share of
// the copies is compared with the owners (trainer.cross_check), a copy may be a wrong one.
void leave_out_copies(std::vector<Brought>& brought, const Recovery& recovery);

// One part of a state that moves: elements of array k, from one worker's cells to another's.
struct Piece {
  int64_t from = 0;        // the sender's rank in the new epoch
  bool from_copy = false;  // the elements are in its mirror
  int64_t from_rank = 0;   // the rank that owned them, in the old layout
  bool to_copy = false;    // they go into the mirror of the receiver
  Region region;
};

// The elements of array k that one worker of the old layout owned, and who has them now.
struct OldCells {
  struct Holder {
    int64_t rank = 0;  // in the new epoch
    bool copy = false;
    int64_t of = 0;  // whose cells it holds, in the old layout
  };
  Region box;
  std::vector<Holder> holders;  // empty: these elements are lost
};

// Returns the cells of array k by the old layout, each once. Takes time in proportion to the workers.
std::vector<OldCells> old_cells(size_t k, const std::vector<Brought>& brought, const Recovery& recovery,
                                const StateLayout& before);

// Returns all pieces of array k that worker `to` needs, in the order in which they are sent. `cells` are its
// old_cells(), none of which is lost. `mirror_of`: the rank whose cells it mirrors in the new epoch; nothing:
// none.
std::vector<Piece> pieces_for(size_t k, int64_t to, std::optional<int64_t> mirror_of,
                              const std::vector<OldCells>& cells, const StateLayout& now);

}  // namespace ostro::fleet
