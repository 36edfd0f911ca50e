// Starts worker processes on this machine, starts them again when they are killed, and waits for their end.
// Knows nothing of what they do.
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
// One that was asked to leave (SIGTERM), and whom the others have let go, exits with this one: none is
// started in its place.
inline constexpr int kExitLeft = 77;

struct LocalWorkers {
  std::vector<std::string> command;                              // program and arguments of every worker
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
  int64_t count = 1;
  // How often a worker is replaced after it was killed by a signal or lost its place, over all workers.
  int64_t restarts = 1000;
  // How many are replaced in a row, times `count`, while `progress` stays as it is: what ends workers at
  // their start would end them for ever.
  int64_t restarts_without_progress = 5;
  std::function<int64_t()> progress;  // changes when the job gets on; asked when a worker was lost
  std::function<void()> look;         // called many times a second
  // Processes that must end at once, because they hang or are stopped (SIGKILL); those that are no workers of
  // this launcher are left alone. Asked again and again.
  std::function<std::vector<int64_t>()> hopeless;
};

// Returns when no worker is left: the exit status of the first that failed, else 0. When one exits by itself,
// with any other status, the job is over: the others get a few seconds, then SIGTERM, then SIGKILL. It is
// over, too, when nothing gets on; then an error says what the last worker wrote to standard error. The
// workers die when this process does.
Result<int> run_local_workers(const LocalWorkers& workers);

}  // namespace ostro::cluster
