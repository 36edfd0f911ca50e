// RowShare, checked_leaves: which leaves of a step a worker runs, which are computed twice
// (trainer.cross_check), and which rows of a batch a worker reads for both. Values and pure functions; there
// are no errors.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ostro/fleet/check/check_draw.h"
#include "ostro/fleet/shares/leaf_shares.h"

namespace ostro::fleet {

// A leaf that is computed twice, with the places of its workers among those that share the leaves.
struct CheckedLeaf {
  int64_t leaf = 0, owner = 0;
  Checkers by;
  bool may_run(int64_t place) const;
};
// Those of a step, ascending; `shares` say whose each leaf is. A pure function.
std::vector<CheckedLeaf> checked_leaves(const CheckDraw& draw, int64_t step, int64_t leaves, int64_t workers,
                                        const LeafShares& shares = {});

// The rows of a batch that a worker reads: those of its leaves, and of those of others that it may have to
// compute for a check. A value; it does not refer to the plan.
struct RowShare {
  int64_t rows = 1, workers = 1,
          place = 0;       // rows of a leaf; workers that share the leaves; its place in them
  bool dealt_out = false;  // ExchangeSchedule::kLayer
  // dealt_out: the workers in the places [first, first + count) run their leaves in rounds; 0: all workers.
  int64_t first = 0, count = 0;
  CheckDraw check = {};
  LeafShares shares = {};  // not with dealt_out

  // The leaves that are dealt out to those workers.
  train::LeafRange dealt(int64_t leaves) const;
  // The leaves of this worker, ascending.
  std::vector<int64_t> own_leaves(int64_t leaves) const;
  // The rows, as ascending ranges [first, second), for a batch of `batch_size` rows of this step (the first
  // is 1).
  std::vector<std::pair<int64_t, int64_t>> of(int64_t batch_size, int64_t step) const;
};

}  // namespace ostro::fleet
