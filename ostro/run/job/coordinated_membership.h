// CoordinatedMembership: gives training the epochs, values and connections of a job that a coordinator runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "ostro/base/watch/pulse.h"
#include "ostro/cluster/member.h"
#include "ostro/cluster/watch/job_watch.h"
#include "ostro/dist/reach.h"
#include "ostro/fleet/processes/membership.h"
#include "ostro/train/options/options.h"

namespace ostro::run {

// Passes the calls to `member`, which must outlive it, as must `options` and the relay of `reach`. Workers
// connect with each other over TCP, as `reach` says, and prove that they know `secret`. `given_up` ends
// waiting for the others. With trainer.mesh.slices: auto, the workers of an epoch in which one has no slice
// measure their links when they have connected, without counting in bytes that were sent, and without a limit
// of time for those who wait; if they are in other slices than the epoch has, it ends, and the next one has
// them. Errors and threads: as of Membership.
class CoordinatedMembership final : public fleet::Membership {
 public:
  CoordinatedMembership(cluster::Member& member, dist::Reach reach, std::string secret,
                        const train::TrainerOptions& options, std::function<bool()> given_up)
      : member_(member),
        reach_(std::move(reach)),
        secret_(std::move(secret)),
        options_(options),
        given_up_(std::move(given_up)) {}

  Result<fleet::EpochView> next(int64_t after, std::chrono::milliseconds timeout) override {
    ASSIGN_OR_RETURN(const cluster::Epoch epoch, member_.wait_epoch(after, timeout));
    return fleet::EpochView{epoch.number, epoch.rank,    epoch.size,        epoch.hosts,
                            epoch.slices, epoch.guessed, epoch.rates.limit, epoch.rates.fastest};
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
  void shares_changed(const std::string& text) override {
    member_.tells(std::string(cluster::kSharesWord) + text);
  }

 private:
  Status find_slices(const fleet::EpochView& epoch, dist::Group& group);

  cluster::Member& member_;
  const dist::Reach reach_;
  const std::string secret_;
  const train::TrainerOptions& options_;  // time limits
  const std::function<bool()> given_up_;
};

}  // namespace ostro::run
