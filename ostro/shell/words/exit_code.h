// ExitCode: the meanings of the process' exit status. `ostro --help` prints them, too.
#pragma once

#include "ostro/cluster/local/local_launcher.h"

namespace ostro::cli {

enum ExitCode : int {
  kExitOk = 0,           // done; verify, diff: equal
  kExitFailed = 1,       // an error, told in one line that begins with "error: "; verify, diff: differs
  kExitUsage = 2,        // a command line or configuration that makes no sense; diff: cannot compare
  kExitIncomplete = 3,   // verify: nothing differs, but a part of the record is missing
  kExitCannotCheck = 4,  // verify: it could not be compared here
  // 75, train: stopped by SIGTERM, SIGINT or SIGHUP after saving; the same command goes on
  kExitInterrupted = cluster::kExitInterrupted,
  kExitLostPlace = cluster::kExitLostPlace,  // 76, worker: it lost its place among the workers
  // 77, worker: it was asked to leave (SIGTERM), and the others have let it go
  kExitLeft = cluster::kExitLeft,
  kExitReplaced = cluster::kExitReplaced,  // 78, coordinator --replaced: it ended alone, and the job goes on
  // 79, worker: a majority of the others has found it to compute or to keep what they do not
  kExitCorrupt = cluster::kExitCorrupt
};

}  // namespace ostro::cli
