// Monitor: watches a run from outside its steps: answers Prometheus, keeps what happens in one file, and
// gives alerts. It has a thread, which looks at the files of the run, and at the job, once a second.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ostro/cluster/watch/job_watch.h"
#include "ostro/io/files/file_system.h"
#include "ostro/train/options/config.h"

namespace ostro::monitor {

inline constexpr const char* kEventsFile = "events.jsonl";
inline constexpr const char* kAlertsFile = "alerts.jsonl";

// What the coordinator in this process sees; empty: there is none. Called from the monitor's thread.
using WatchedJob = std::function<cluster::JobState()>;

class Monitor {
 public:
  // Listens at trainer.metrics_listen, if there is one, and logs its address; without loopback requests need
  // the token in OSTRO_METRICS_TOKEN, or one that is drawn and logged. `fs` must outlive it. Errors: the
  // address is wrong, in use, or not of this machine.
  static Result<std::unique_ptr<Monitor>> create(io::FileSystem& fs, const train::TrainConfig& config);
  virtual ~Monitor() = default;  // when the last alerts are given, or a minute has passed

  // The run's directory is this process's from now on: events and alerts are written there. `what` is the
  // event that begins: "ostro train". Call it once.
  virtual void begin(const std::string& what, WatchedJob job) = 0;
  // Something has happened that the files do not show. Any thread.
  virtual void note(const std::string& kind, const std::string& text) = 0;
  // How it ended, for the last event; "failed: ..." is an alert. Looks once more, while the job is still
  // there, and answers no more. Does nothing where begin() was not called.
  virtual void end(const std::string& outcome) = 0;
};

}  // namespace ostro::monitor
