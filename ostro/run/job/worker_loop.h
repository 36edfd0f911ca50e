// Worker loop: one worker of a run on several processes, from one epoch to the next, until the run is over.
#pragma once

#include <functional>
#include <string>

#include "ostro/context/context.h"
#include "ostro/run/loop/session.h"

namespace ostro::run {

struct WorkerRequest {
  train::TrainConfig config;
  bool amend = false;
  std::string coordinator;         // ADDRESS:PORT where the coordinator listens
  std::string bind = "127.0.0.1";  // the address of this host that the other workers can reach
  std::string secret;
  // What a session of this process has; its crew and stop are set by the loop.
  std::function<Result<Environment>(runtime::Engine& engine)> environment;
  // Tell how the work ended, and return the exit status for it.
  std::function<int(const Error&)> on_error;
  std::function<int(const Result<RunOutcome>&)> on_outcome;
};

// Joins the coordinator, then leads the run or follows its leader. Returns the exit status of the process (0,
// those of cluster/local_launcher.h, or what on_error and on_outcome say). Errors: before it has joined, when
// an address makes no sense, no engine can be made, or the coordinator refuses this worker.
Result<int> work(const Context& context, const WorkerRequest& request);

}  // namespace ostro::run
