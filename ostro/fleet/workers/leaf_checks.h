// LeafChecks: the leaves of a step that two workers compute, and the comparison of what they got
// (trainer.cross_check). Which they are: checked_leaves (shares/row_share.h).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ostro/fleet/workers/gradient_schedule.h"

namespace ostro::fleet {

// One worker's part in one step, with ExchangeSchedule::kStep. One thread uses it.
class LeafChecks {
 public:
  using Results = train::LeafResults<runtime::Buffer>;
  // Computes a leaf of any worker.
  using Run = std::function<Result<Results>(int64_t leaf)>;
  // Compares the parameters that all workers read (compare_parameters).
  using Parameters = std::function<Result<std::optional<Disagreement>>()>;

  // `plan` and `peers` (plan.leaf_peers(rank)) must outlive it.
  LeafChecks(const WorkerPlan& plan, const std::vector<int64_t>& peers, int64_t rank, int64_t step,
             int64_t leaves);

  int64_t step() const { return step_; }
  // Takes note of a leaf that this worker owns, whose gradients are as it gave them. Errors: of the memory.
  Status computed(int64_t leaf, const Results& results);
  // All workers call it when their leaves are computed; gradients may be on their way. Computes the leaves
  // that this worker has to check, and compares. Where two differ, the parameters that they read are
  // compared; if these are equal, others decide. Fills in `checks`. Errors: kIo when workers disagree; those
  // of `run`, `parameters` and the collectives.
  Status compare(runtime::Collectives& c, const Run& run, const Parameters& parameters, StepChecks& checks);

 private:
  // A result that one worker has to tell.
  struct Told {
    size_t at;  // in checked_
    int64_t place;
    bool known;  // computed() has noted it
  };
  Status tell(runtime::Collectives& c, const std::vector<Told>& list, const Run& run);
  Status decide(runtime::Collectives& c, const Run& run, const Parameters& parameters, StepChecks& checks);
  std::string name(int64_t rank) const;

  const WorkerPlan& plan_;
  const std::vector<int64_t>& peers_;
  const int64_t rank_, step_;
  const std::vector<CheckedLeaf> checked_;
  std::vector<numerics::Fingerprint> known_;  // by checked_
  std::vector<std::vector<Vote>> votes_;      // by checked_
};

}  // namespace ostro::fleet
