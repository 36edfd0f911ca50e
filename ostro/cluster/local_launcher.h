// run_local_workers: starts worker processes on this machine, restarts them when they are killed, and waits
// for their end. It does not depend on what they do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::cluster {

// A worker that leaves because it lost its place among the workers (the lease ran out, the coordinator closed
// the connection) exits with this status: another may be started in its place.
inline constexpr int kExitLostPlace = 76;
// A worker that was asked to leave (SIGTERM), and that the others have released, exits with this status: none
// is started in its place.
inline constexpr int kExitLeft = 77;

// A worker that was stopped together with the whole job, after the run was saved, exits with this status: the
// same command continues the run.
inline constexpr int kExitInterrupted = 75;

struct LocalWorkers {
  std::vector<std::string> command;                              // program and arguments of every worker
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
  int64_t count = 1;
  // The most replacements of workers that were killed by a signal or lost their place, over all workers.
  int64_t restarts = 1000;
  // The most replacements in a row, divided by `count`, while `progress` does not change. Without this limit,
  // workers with a fault at their start would be replaced for ever.
  int64_t restarts_without_progress = 5;
  std::function<int64_t()> progress;  // changes when the job makes progress; called when a worker was lost
  std::function<void()> look;         // called about 100 times a second
  // Returns the ids of processes to be killed (SIGKILL) because they hang or are stopped; the ids of
  // processes that are not workers of this launcher are ignored. Called as often as `look`.
  std::function<std::vector<int64_t>()> hopeless;
};

// Runs until no worker is left. Returns the exit status of the first that failed, else 0. When one exits by
// itself with any other status, the job is over: the others get ten seconds, then SIGTERM (SIGKILL if the job
// failed), then SIGKILL. The job is also over when replacements make no progress; then an error in the log
// shows what the last worker wrote to standard error. Workers are killed when this process ends. Error: a
// process cannot be started.
Result<int> run_local_workers(const LocalWorkers& workers);

}  // namespace ostro::cluster
