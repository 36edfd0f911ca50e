// Recovery: after a worker is lost, chooses the newest state that the survivors can rebuild, and which copy
// of each cell is used.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ostro/fleet/workers/state_layout.h"
#include "ostro/fleet/workers/worker.h"
#include "ostro/optim/option_checks.h"

namespace ostro::fleet {

// Values of one step that the update program measures, at most (UpdateMeasures): those of all parameters, and
// the norms of those that are clipped by themselves.
inline constexpr size_t kMostMeasures = 8 + optim::kMostClipSets;

// What a worker says of the state that it brings; it is sent to all others as it is.
struct Brought {
  int64_t epoch = 0;       // in which its cells were cut; 0: it brings nothing
  int64_t size = 0;        // the workers of that epoch; 1: the whole state
  int64_t rank = -1;       // its rank then
  int64_t mirror_of = -1;  // the rank whose cells it mirrors; -1: of none
  int64_t step = 0;        // its cells are the state after so many steps
  int64_t can_finish = 0;  // 1: it can finish the next step when it gets what was measured
  int64_t measures = 0;    // of the last step: how many there are
  std::array<double, kMostMeasures> measured{};
};

struct Recovery {
  int64_t epoch = 0;  // whose cells are used; 0: no worker has a state
  int64_t size = 0;
  int64_t step = 0;              // the step that all are after, when those behind have finished it
  std::vector<double> measured;  // of that step, in the order of UpdateMeasures
  std::vector<bool> brings;      // by rank: its cells are used
  std::vector<bool> behind;      // by rank: it finishes the step first
};

// The newest state of which every worker that has a part can reach the same step. Every worker computes it
// from the same words.
Recovery plan_recovery(const std::vector<Brought>& brought);

// One part of a state that moves: elements of array k, from one worker's cells to another's.
struct Piece {
  int64_t from = 0;        // rank now
  bool from_copy = false;  // out of its mirror
  int64_t from_rank = 0;   // the rank that owned them, in the old layout
  bool to_copy = false;    // into the mirror of the receiver
  Region region;
};

// All pieces of array k that worker `to` needs, in the order in which they are sent. Nothing: some
// element is lost. `mirror_of`: the rank whose cells it mirrors from now on; nothing: of none.
std::optional<std::vector<Piece>> pieces_for(size_t k, int64_t to, std::optional<int64_t> mirror_of,
                                             const std::vector<Brought>& brought, const Recovery& recovery,
                                             const StateLayout& before, const StateLayout& now);

}  // namespace ostro::fleet
