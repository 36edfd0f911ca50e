// Membership: one process's view of the workers that train a run together: the epochs, the connections of an
// epoch, and the values that its workers share. The coordinator decides who is in an epoch (ostro/cluster);
// training knows only this interface.
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

// A set of workers that train together. It never changes: when one is lost or another joins, a new epoch with
// a higher number begins.
struct EpochView {
  int64_t number = 0;
  int64_t rank = -1;  // of this process; -1: it is not in this epoch, because it leaves
  int64_t size = 0;
  std::vector<std::string> hosts;             // by rank
  std::vector<std::string> slices = {};       // the name of each worker's slice, by rank; empty: one slice
  std::vector<bool> guessed = {};             // it is not known yet, by rank; empty: all are known
  int64_t slice_limit = 0, fastest_link = 0;  // what was measured before (slices/measured_links.h)
};

// The interface. Its functions may be called by several threads.
class Membership {
 public:
  virtual ~Membership() = default;
  // Waits for an epoch with a number above `after`, and returns the newest one that has not ended. Errors:
  // kBusy after the timeout; kIo when this process has lost its place; kInvalidArgument when it was refused.
  virtual Result<EpochView> next(int64_t after, std::chrono::milliseconds timeout) = 0;
  // store(): the values of one epoch; get() fails when the epoch has ended. job(): values that outlive
  // epochs.
  virtual dist::KeyValue& store(int64_t epoch) = 0;
  virtual dist::KeyValue& job() = 0;
  // Connects this process with the others of the epoch. Exchanges of the group fail when the epoch ends.
  // Errors: kIo when connecting failed, but may succeed in a later epoch.
  virtual Result<std::unique_ptr<dist::Group>> connect(const EpochView& epoch, const ir::Mesh& mesh) = 0;
  // Reports that this worker has read the run, so that an epoch may include it.
  virtual void ready() = 0;
  // Reports that all workers of `epoch` are connected. Earlier epochs are over then.
  virtual void began(int64_t epoch) = 0;
  // Reports that `epoch` cannot go on, and why: a peer was lost.
  virtual void fault(int64_t epoch, const std::string& why) = 0;
  // Tells people that leaves are shared out anew: to whom, and why.
  virtual void shares_changed(const std::string& text) = 0;
};

}  // namespace ostro::fleet
