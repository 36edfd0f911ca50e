// RunStatus: the state of a run directory as `ostro status` shows it: from its record, chain, metrics,
// cluster.json and goodput.json.
#pragma once

#include <optional>
#include <string>

#include "ostro/cluster/watch/job_watch.h"
#include "ostro/context/context.h"
#include "ostro/run/report/goodput.h"

namespace ostro::run {

struct RunStatus {
  std::string directory;
  // "running": a process holds the run's lock. "waiting": only a coordinator or workers of the run are there.
  // "gone": the last session has no end, and none of its processes is left. "elsewhere": it has no end, and
  // its processes are, or were, on another host. Otherwise the outcome of the last session: "finished", ...
  std::string state;
  std::string lock;  // the process that holds the run, or held it last
  int64_t sessions = 0;
  int64_t step = 0, total = 0;  // total 0: not known
  std::optional<double> loss, tokens_per_second, eta_seconds;
  std::optional<GoodputTotals> goodput;
  std::optional<cluster::JobState> job;  // the last one on several processes
  bool job_is_live = false;              // its coordinator is there
};

// Reads the files and returns the status. Errors: there is no run; its chain is damaged.
Result<RunStatus> read_status(const Context& context, const std::string& run_directory);

std::string status_text(const RunStatus& status);
std::string status_json(const RunStatus& status);

}  // namespace ostro::run
