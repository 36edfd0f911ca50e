// When a launcher stops replacing workers that end before anything gets on.
#pragma once

#include <cstdint>
#include <functional>

#include "ostro/base/error.h"

namespace ostro::cluster {

struct LocalWorkers;  // local_launcher.h

struct Patience {
  // How many workers are replaced in a row, times LocalWorkers::count, while `progress` stays as it is: what
  // ends workers at their start would end them for ever.
  int64_t restarts = 5;
  std::function<int64_t()> progress;  // changes when the job gets on; asked when a worker was lost
};

// As run_local_workers(workers). Where it gives up because nothing gets on, the job is over, and an error
// says what the last worker wrote to standard error.
Result<int> run_local_workers(const LocalWorkers& workers, const Patience& patience);

}  // namespace ostro::cluster
