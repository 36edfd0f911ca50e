// One worker's side of a job: its connection to the coordinator (coordinator.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/cluster/epoch.h"
#include "ostro/cluster/watch/progress.h"
#include "ostro/dist/key_value.h"

namespace ostro::cluster {

// Owns the connection and a thread that reads it and sends heartbeats. Thread-safe. When the connection is
// lost while this worker works in an epoch, another one is made for as long as ten minutes.
class Member {
 public:
  // Connects, proves that both sides know the secret, and says hello; tries again while nobody listens, until
  // the timeout. Errors: kInvalidArgument when a side does not know the secret or the Hello is too long; kIo
  // when the coordinator cannot be reached; kBusy when it does not answer; kCorrupt when something else does.
  // Whether it takes this worker, wait_epoch() says.
  static Result<std::unique_ptr<Member>> join(const std::string& host, int port, const std::string& secret,
                                              const Hello& hello, std::chrono::milliseconds timeout);
  // Leaves: the epoch ends for the others. Waits for a callback that runs.
  ~Member();

  // Waits for an epoch with a number above `after` of which this worker is a member, or from which it is left
  // out as it wanted (rank -1). Errors: kBusy after the timeout; kNotFound when the run is over; kIo when the
  // coordinator is gone; kInvalidArgument when it refused this worker (its message).
  Result<Epoch> wait_epoch(int64_t after, std::chrono::milliseconds timeout);

  // Has the callback called once, from the member's thread, when the epoch ends because a member was lost or
  // the coordinator is gone; or at once, from this thread, if it has already ended. One callback at a time;
  // nullptr removes it (and waits for one that runs, unless called from it). A callback must not wait: no
  // heartbeats are sent meanwhile.
  void on_end(int64_t epoch, std::function<void(const std::string& reason)> callback);

  // Says that the epoch cannot go on (a peer was lost): the coordinator ends it for all and begins a new one.
  void fault(int64_t epoch, const std::string& why);

  // Says that this worker knows what is trained; that it wants to leave without a loss to the others; that it
  // works in this epoch, and no more in those before; that the run is over for everyone.
  void ready();
  void leave();
  void began(int64_t epoch);
  void done(int64_t status);
  // Says why this worker is about to end though the run does not; for whoever reads the coordinator's log.
  void goes(const std::string& why);
  // The coordinator has asked to save and to stop; has said that the run is over.
  bool stop_asked() const;
  std::optional<int64_t> over() const;

  // Keys of one epoch, for as long as the Member lives; get() ends with kIo and the reason when the epoch has
  // ended. Keys of the job (epoch 0) stay, also when a coordinator takes the place of another.
  dist::KeyValue& store(int64_t epoch);

  // What the coordinator is told with each heartbeat. The function must not wait.
  void report(std::function<Progress()> progress);

  // No more heartbeats, as if the process had stopped.
  void mute_for_test();

 private:
  struct State;
  explicit Member(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ostro::cluster
