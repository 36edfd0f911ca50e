// Member: one worker's side of a job: its connection to the coordinator (coordinator.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/cluster/messages/epoch.h"
#include "ostro/cluster/watch/progress.h"
#include "ostro/dist/key_value.h"

namespace ostro::cluster {

// Owns the connection and a thread that reads it and sends heartbeats. Thread-safe. When the connection is
// lost while this worker works in an epoch, another one is made for as long as ten minutes.
class Member {
 public:
  // Connects, proves that both sides know the secret, and sends the Hello; tries again while no coordinator
  // listens, until the timeout. Errors: kInvalidArgument when a side does not know the secret or the Hello is
  // too long; kIo when the coordinator cannot be reached; kBusy when it does not answer; kCorrupt when
  // another program does. A coordinator that refuses this worker is an error of wait_epoch(). With `tls` the
  // connection is encrypted, by certificates that follow from the secret (tls/certificates.h); a coordinator
  // that has another value is kInvalidArgument.
  static Result<std::unique_ptr<Member>> join(const std::string& host, int port, const std::string& secret,
                                              const Hello& hello, std::chrono::milliseconds timeout,
                                              bool tls = false);
  // Disconnects: the epoch ends for the others. Waits for a running callback.
  ~Member();

  // Waits for an epoch with a number above `after` of which this worker is a member, or from which it is left
  // out on its own request (rank -1). Errors: kBusy after the timeout; kNotFound when the run is over; kIo
  // when the coordinator is gone; kInvalidArgument when it refused this worker (its message).
  Result<Epoch> wait_epoch(int64_t after, std::chrono::milliseconds timeout);

  // Sets the callback for the end of an epoch: called once, from the member's thread, when a member was lost
  // or the coordinator is gone; or at once, from this thread, if the epoch has already ended. One callback at
  // a time; nullptr removes it (and waits for a running one, unless called from it). A callback must not
  // wait: no heartbeats are sent meanwhile.
  void on_end(int64_t epoch, std::function<void(const std::string& reason)> callback);

  // Reports that the epoch cannot continue (a peer was lost): the coordinator ends it for all and begins a
  // new one.
  void fault(int64_t epoch, const std::string& why);

  // Reports that this worker has the run's programs: a later epoch may include it.
  void ready();
  // Asks to leave without a loss to the others.
  void leave();
  // Reports that this worker works in this epoch, and no more in those before.
  void began(int64_t epoch);
  // Reports that the run is over for all workers, with this exit status.
  void done(int64_t status);
  // Reports the reason why this worker is about to end although the run continues, for the coordinator's log.
  void goes(const std::string& why);
  // Tells what has happened, for the events of the job (watch/job_watch.h); the text begins with a word for
  // its kind.
  void tells(const std::string& what);
  // Says in which slices the workers of an epoch are, by rank: those that had no name of one have it from now
  // on. Rank 0 does.
  void slices(int64_t epoch, const FoundNames& found);
  // True when the coordinator has asked to save and to stop.
  bool stop_asked() const;
  // The exit status of the run, when the coordinator has reported that it is over.
  std::optional<int64_t> over() const;

  // The keys of one epoch, for as long as the Member lives; get() fails with kIo and the reason when the
  // epoch has ended. Keys of the job (epoch 0) remain when a coordinator is restarted.
  dist::KeyValue& store(int64_t epoch);

  // Sets the source of the progress that each heartbeat carries. The function must not wait.
  void report(std::function<Progress()> progress);
  // Sets the source of what this process has written to standard error: each heartbeat, and the end of the
  // connection, passes on at most so many bytes of it. The function must not wait or log.
  void pass_on(std::function<std::string(size_t most)> said);
  // The address of the coordinator, in numbers; the last one while it is gone.
  std::string coordinator_address() const;

  // Sends no more heartbeats, as if the process had stopped.
  void mute_for_test();

 private:
  struct State;
  explicit Member(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ostro::cluster
