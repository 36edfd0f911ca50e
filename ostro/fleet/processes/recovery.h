// What is left of a training state when workers come together in a new epoch, and who brings what.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ostro/fleet/workers/state_layout.h"
#include "ostro/fleet/workers/worker.h"
#include "ostro/optim/option_checks.h"

namespace ostro::fleet {

// What a worker says of the state that it brings; it is sent to all others as it is.
struct Brought {
  int64_t epoch = 0;                   // in which its cells were cut; 0: it brings nothing
  int64_t size = 0;                    // the workers of that epoch; 1: the whole state
  int64_t rank = -1;                   // its rank then
  int64_t kept_for = -1;               // the rank of whose cells it has copies
  int64_t step = 0;                    // its cells are the state after so many steps
  int64_t can_finish = 0;              // 1: it can finish the next step when it gets what was measured
  int64_t ok = 0;                      // of the last step
  double loss = 0, gradient_norm = 0;  // of the last step
  int64_t groups = 0;                  // that have norms of their own
  std::array<double, optim::kMostClipSets> group_norms{};
};

struct Recovery {
  int64_t epoch = 0;  // whose cells are used; 0: nobody has a state
  int64_t size = 0;
  int64_t step = 0;          // the step that all are after, when those behind have finished it
  Measured measured;         // of that step
  std::vector<bool> brings;  // by rank: its cells are used
  std::vector<bool> behind;  // by rank: it finishes the step first
};

// The newest state of which every worker that has a part can reach the same step. Every worker computes it
// from the same words.
Recovery plan_recovery(const std::vector<Brought>& brought);

// One part of a state that moves: elements of array k, from one worker's cells to another's.
struct Piece {
  int64_t from = 0;        // rank now
  bool from_copy = false;  // out of its copies
  int64_t from_rank = 0;   // whose cells they were, in the old layout
  bool to_copy = false;    // into the copies that it keeps for another
  Region region;
};

// All pieces of array k that worker `to` needs, in the order in which they are sent. Nothing: some
// element is lost. `kept_for`: the rank of whose cells it keeps copies from now on, or -1.
std::optional<std::vector<Piece>> pieces_for(size_t k, int64_t to, int64_t kept_for,
                                             const std::vector<Brought>& brought, const Recovery& recovery,
                                             const StateLayout& before, const StateLayout& now);

}  // namespace ostro::fleet
