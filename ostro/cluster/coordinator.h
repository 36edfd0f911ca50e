// The one that decides who is in a job. Workers connect to it (member.h); it knows nothing of what they
// compute.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/cluster/epoch.h"
#include "ostro/cluster/event.h"
#include "ostro/cluster/watch/job_watch.h"

namespace ostro::cluster {

struct CoordinatorOptions {
  std::string bind = "127.0.0.1";  // an address in numbers; others than loopback need a secret
  int port = 0;                    // 0: any free one
  std::string secret;              // that a worker must know
  // What workers are compared with, as if it were the first of them; without it, with the oldest.
  std::optional<Hello> expected;
  // How many workers an epoch may have. The first begins when the most are there, or after a while with
  // fewer.
  int64_t min_workers = 1, max_workers = 1;
  int64_t multiple = 1;                   // of which their number must be one
  std::chrono::milliseconds lease{5000};  // a worker that is silent for so long is lost
  std::string journal;  // a file with the last epoch's number, so that a restarted coordinator goes on with a
                        // higher one; "": none. FILE.lock beside it keeps two coordinators from using it
  Observer observer;    // may be empty
  std::string state_file;  // the file of cluster.json (watch/cluster_file.h); "": none
  std::function<std::string(int64_t workers)> mesh;  // of so many workers, as text, for that file
  // Called from the coordinator's thread when a worker is lost because it is silent. Must not wait.
  std::function<void(const Hello&)> on_silence;
};

// A thread with a listening socket. Thread-safe.
class Coordinator {
 public:
  // Errors: kInvalidArgument for options that make no sense (an address off loopback without a secret); kBusy
  // when the port is in use; kIo and kCorrupt for the journal.
  static Result<std::unique_ptr<Coordinator>> start(const CoordinatorOptions& options);
  // Closes all connections: every member sees that the coordinator is gone.
  ~Coordinator();

  int port() const;
  // The number of the epoch that goes on or was the last; 0 when there was none.
  int64_t epoch() const;
  // How many workers are there, those who wait for an epoch included.
  int64_t members() const;
  // Asks all workers to save and to stop.
  void stop_run();
  // The exit status of the run, when a worker has said that it is over.
  std::optional<int64_t> over() const;
  // Grows when a worker tells, with a heartbeat, that it has done a step.
  int64_t steps_done() const;
  // Who is in, what each does, what happened.
  JobState state() const;

 private:
  struct State;
  explicit Coordinator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ostro::cluster
