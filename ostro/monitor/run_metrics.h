// run_metrics_text: the figures of a training run in Prometheus' text format. read_figures: those that are in
// the files of a run's directory.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ostro/cluster/watch/job_watch.h"
#include "ostro/io/files/file_system.h"
#include "ostro/run/report/goodput.h"
#include "ostro/run/report/meters.h"

namespace ostro::monitor {

// What is not there is left out of the text.
struct RunFigures {
  std::string directory;
  std::optional<run::Meters> meters;
  std::optional<run::GoodputTotals> goodput;
  std::optional<cluster::JobState> job;  // of a run on several processes
  // Joined, left and lost workers are counted by the coordinator's process alone.
  bool counts_workers = false;
  double disk_free = -1, disk_size = -1;  // bytes; below 0: not known
  // Alerts by name: how many there were since this process began, and whether its cause is still there;
  // nothing where the cause is a moment.
  struct AlertCount {
    int64_t raised = 0;
    std::optional<bool> active = false;
  };
  std::map<std::string, AlertCount> alerts;
};

// A file that is not there, or damaged, is passed over.
RunFigures read_figures(io::FileSystem& fs, const std::string& run_directory);

std::string run_metrics_text(const RunFigures& figures);

}  // namespace ostro::monitor
