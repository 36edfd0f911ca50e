// LeafSharing: the leader's part in sharing leaves out by measured speed (trainer.shares: measured). It takes
// note of the times of each step, and gives all workers other shares when they pay.
#pragma once

#include <memory>
#include <string>

#include "ostro/fleet/processes/crew.h"
#include "ostro/fleet/shares/share_rule.h"

namespace ostro::fleet {

// One thread uses it.
class LeafSharing {
 public:
  // `crew` must outlive it.
  explicit LeafSharing(Crew& crew) : crew_(crew) {}

  // Before each step of the leader, of `leaves` leaves: sends all workers other shares if they are due. With
  // even shares it does nothing. Errors: those of the group.
  Status before_step(int64_t leaves);
  // After it: what the whole step took.
  void after_step(double seconds);

 private:
  std::string told(int64_t leaves, const LeafShares& before) const;

  Crew& crew_;
  std::unique_ptr<ShareKeeper> keeper_;
  int64_t epoch_ = 0;  // that the keeper is for
};

}  // namespace ostro::fleet
