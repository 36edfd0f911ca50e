// Membership: the workers that train a run together, as one process sees them: one epoch after the other, its
// connections, and the values that its workers share. The coordinator decides (ostro/cluster); training only
// knows this interface.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/dist/group.h"
#include "ostro/dist/key_value.h"
#include "ostro/ir/program/mesh.h"

namespace ostro::fleet {

// A set of workers that train together. It never changes: when one is lost or another comes, there is a new
// epoch with a higher number.
struct EpochView {
  int64_t number = 0;
  int64_t rank = -1;  // of this process; -1: it is not in this epoch, because it leaves
  int64_t size = 0;
  std::vector<std::string> hosts;  // by rank
};

// Thread-safe.
class Membership {
 public:
  virtual ~Membership() = default;
  // The newest epoch with a number above `after` that has not ended. Errors: kBusy after the timeout; kIo:
  // this process has lost its place; kInvalidArgument: it was refused.
  virtual Result<EpochView> next(int64_t after, std::chrono::milliseconds timeout) = 0;
  // Values of an epoch; get() fails when it has ended. And values of the job, which stay.
  virtual dist::KeyValue& store(int64_t epoch) = 0;
  virtual dist::KeyValue& job() = 0;
  // Connects with the others of this epoch. The group fails when the epoch ends. Errors: kIo when it
  // failed but may succeed in a later epoch.
  virtual Result<std::unique_ptr<dist::Group>> connect(const EpochView& epoch, const ir::Mesh& mesh) = 0;
  // This worker knows the run, so that it can be taken into an epoch beside workers that train.
  virtual void ready() = 0;
  // All workers of this epoch are connected; earlier ones are over.
  virtual void began(int64_t epoch) = 0;
  // This epoch cannot go on, because a peer was lost.
  virtual void fault(int64_t epoch, const std::string& why) = 0;
};

}  // namespace ostro::fleet
