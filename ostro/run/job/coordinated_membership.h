// CoordinatedMembership: gives training the epochs, values and connections of a job that a coordinator runs.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "ostro/base/watch/pulse.h"
#include "ostro/cluster/member.h"
#include "ostro/fleet/processes/membership.h"

namespace ostro::run {

// Passes the calls to `member`, which must outlive it. Workers connect with each other over TCP, each at the
// address `bind`, and prove that they know `secret`. Errors and threads: as of Membership.
class CoordinatedMembership final : public fleet::Membership {
 public:
  CoordinatedMembership(cluster::Member& member, std::string bind, std::string secret)
      : member_(member), bind_(std::move(bind)), secret_(std::move(secret)) {}

  Result<fleet::EpochView> next(int64_t after, std::chrono::milliseconds timeout) override {
    ASSIGN_OR_RETURN(const cluster::Epoch epoch, member_.wait_epoch(after, timeout));
    return fleet::EpochView{epoch.number, epoch.rank, epoch.size, epoch.hosts};
  }
  dist::KeyValue& store(int64_t epoch) override { return member_.store(epoch); }
  dist::KeyValue& job() override { return member_.store(0); }
  Result<std::unique_ptr<dist::Group>> connect(const fleet::EpochView& epoch, const ir::Mesh& mesh) override;
  void ready() override { member_.ready(); }
  void began(int64_t epoch) override {
    pulse_epoch(epoch);
    member_.began(epoch);
  }
  void fault(int64_t epoch, const std::string& why) override { member_.fault(epoch, why); }

 private:
  cluster::Member& member_;
  const std::string bind_, secret_;
};

}  // namespace ostro::run
