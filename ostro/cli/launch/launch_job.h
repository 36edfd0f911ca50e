// run_job: runs the coordinator of a job in this process, and the processes that are its workers, until the
// job has ended. What the launchers that start processes from here have in common.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ostro/cluster/coordinator.h"
#include "ostro/cluster/local/local_launcher.h"
#include "ostro/cluster/watch/worker_output.h"
#include "ostro/monitor/monitor.h"
#include "ostro/run/notice/signals.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {

// The secret of a job: OSTRO_JOB_SECRET if that is set, else `earlier`, else 256 bits that no other job has.
std::string job_secret(const std::string& earlier = "");

// Where workers on other machines run.
struct WorkerPlace {
  std::string folder, program;
};
// What the options --folder and --program say; where one is empty, as here. Error: the current folder is
// gone.
Result<WorkerPlace> worker_place(const std::string& folder, const std::string& program);

// The folder of the run's directory in which the standard error of workers is kept.
std::string output_folder(const train::TrainConfig& config);
// Has `output` keep what workers tell the coordinator of it, for launchers that do not read it themselves.
// `output` must outlive the coordinator; an observer that is there is still called.
void keep_output(cluster::CoordinatorOptions& options, cluster::WorkerOutput& output);

// A monitor of the run that the coordinator has; it must end before the coordinator does. `what` begins the
// run's events: "ostro launch local". Errors: those of Monitor::create.
Result<std::unique_ptr<monitor::Monitor>> watch_job(const train::TrainConfig& config, const std::string& what,
                                                    const cluster::Coordinator& coordinator);
// Ends it with the job's exit status, or its error. Returns `status`.
Result<int> end_watch(monitor::Monitor& monitor, Result<int> status);

// What a launcher calls again and again: once signals ask this process to stop, the workers save and end.
std::function<void()> look_for_stop(const run::StopSignals& signals, cluster::Coordinator& coordinator);

// The exit status of a job whose coordinator says that it is over.
std::function<std::optional<int>()> look_for_end(cluster::Coordinator& coordinator);

// `start` is told the coordinator's port before the first worker starts, and sets how workers are started.
// Signals that ask this process to stop make the workers save and end. The run is watched (`what`:
// watch_job), and what workers write to standard error is kept in RUN/stderr. Returns the exit status of the
// job. Errors: those of Coordinator::start, watch_job, `start` and run_local_workers.
Result<int> run_job(const train::TrainConfig& config, const std::string& what,
                    const cluster::CoordinatorOptions& options, cluster::LocalWorkers local,
                    const std::function<Status(int port, cluster::LocalWorkers& local)>& start);

}  // namespace ostro::cli
