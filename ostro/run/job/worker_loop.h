// WorkerRequest, work: one worker of a run on several processes, from one epoch to the next, until the run is
// over.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "ostro/base/net/host_port.h"
#include "ostro/context/context.h"
#include "ostro/run/loop/session.h"

namespace ostro::run {

struct WorkerRequest {
  train::TrainConfig config;
  bool amend = false;
  int64_t sharers = 1;             // workers that share the memory of its GPU, this one included
  HostPort coordinator;            // where it listens
  std::string bind = "127.0.0.1";  // the address of this host at which it listens for the other workers
  std::string advertise;           // what they are told instead (dist/reach.h, parse_advertised); "": nothing
  // How long it waits for the coordinator, and for the coordinator's name to have an address.
  std::chrono::seconds patience{30};
  std::string slice;  // the name of its slice; "": none
  std::string secret;
  // Makes the environment of a session of this process; the loop sets its crew and stop.
  std::function<Result<Environment>(runtime::Engine& engine)> environment;
  // Report how the work ended, and return the exit status for it.
  std::function<int(const Error&)> on_error;
  std::function<int(const Result<RunOutcome>&)> on_outcome;
};

// Joins the coordinator, then leads the run or follows its leader. Returns the exit status of the process: 0,
// one of those of cluster/local/local_launcher.h, or the result of on_error or on_outcome. Errors, before it
// has joined: an address is wrong, no engine can be made, or the coordinator refuses this worker.
Result<int> work(const Context& context, const WorkerRequest& request);

}  // namespace ostro::run
