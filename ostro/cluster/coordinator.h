// Coordinator: decides which workers are in a job. Workers connect to it (member.h); it does not depend on
// what they compute.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/cluster/event.h"
#include "ostro/cluster/messages/epoch.h"
#include "ostro/cluster/watch/job_watch.h"

namespace ostro::cluster {

struct CoordinatorOptions {
  // An address in numbers, or kAnyAddress (base/net/listen.h); others than loopback need a secret.
  std::string bind = "127.0.0.1";
  int port = 0;        // 0: any free one
  std::string secret;  // of the job; a worker must prove it
  bool tls = false;    // connections are encrypted, and need a secret; others are refused
  // The values that a worker must have to be admitted. Without them, every worker must have those of the
  // worker that joined first.
  std::optional<Hello> expected;
  // The least and the greatest number of workers in an epoch. The first epoch begins when max_workers have
  // joined, or with fewer when for two seconds no worker has joined.
  int64_t min_workers = 1, max_workers = 1;
  int64_t multiple = 1;  // the number of workers must be a multiple of this
  int64_t replicas = 0;  // as in Sizes (epoch_sizes.h)
  bool equal_slices = false;
  std::chrono::milliseconds lease{5000};  // a worker that is silent for this long is lost
  // A connection that is relayed counts as lost when the machine of one end acknowledges nothing for so long.
  std::chrono::milliseconds link_timeout{60'000};
  // How many connections it relays at most, two for each pair of workers; none: as many as the limit of open
  // files leaves beside the members (relay/relay_hub.h).
  std::optional<int64_t> relay_ends;
  // The path of a file with the number of the last epoch, so that a restarted coordinator continues with a
  // higher one; "": none. A lock, the file with .lock behind its name, keeps two coordinators from using it.
  std::string journal;
  Observer observer;       // may be empty
  std::string state_file;  // the file of cluster.json (watch/cluster_file.h); "": none
  std::function<std::string(int64_t workers)> mesh;  // the mesh of that many workers as text, for that file
  // Called from the coordinator's thread with what a worker has written to standard error (Member::pass_on),
  // a part of a line perhaps. Must not wait. Without it that is dropped.
  std::function<void(const Hello&, std::string_view bytes)> on_said;
  // Called from the coordinator's thread when a worker is lost because it is silent. Must not wait.
  std::function<void(const Hello&)> on_silence;
};

// Owns a thread with a listening socket. Thread-safe.
class Coordinator {
 public:
  // Errors: kInvalidArgument for options that contradict each other (an address off loopback, or TLS, without
  // a secret); kBusy when the port is in use; kIo and kCorrupt for the journal.
  static Result<std::unique_ptr<Coordinator>> start(const CoordinatorOptions& options);
  // Closes all connections: every member sees that the coordinator is gone.
  ~Coordinator();

  int port() const;
  // The number of the current or else the last epoch; 0 when there was none.
  int64_t epoch() const;
  // The number of connected workers, including those that wait for an epoch.
  int64_t members() const;
  // Asks all workers to save and to stop.
  void stop_run();
  // The exit status of the run; nothing until a worker has reported that the run is over.
  std::optional<int64_t> over() const;
  // Grows when a worker's heartbeat reports a later step.
  int64_t steps_done() const;
  // What it has seen of the job: members, progress, events, counts.
  JobState watched() const;

 private:
  struct State;
  explicit Coordinator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ostro::cluster
