// run_job: runs the coordinator of a job in this process, and the processes that are its workers, until the
// job has ended. What the launchers that start processes from here have in common.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ostro/cluster/coordinator.h"
#include "ostro/cluster/local_launcher.h"
#include "ostro/run/loop/signals.h"
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

// What a launcher calls again and again: once signals ask this process to stop, the workers save and end.
std::function<void()> look_for_stop(const run::StopSignals& signals, cluster::Coordinator& coordinator);

// The exit status of a job whose coordinator says that it is over.
std::function<std::optional<int>()> look_for_end(cluster::Coordinator& coordinator);

// `start` is told the coordinator's port before the first worker starts, and sets how workers are started.
// Signals that ask this process to stop make the workers save and end. Returns the exit status of the job.
// Errors: those of Coordinator::start, `start` and run_local_workers.
Result<int> run_job(const train::TrainConfig& config, const cluster::CoordinatorOptions& options,
                    cluster::LocalWorkers local,
                    const std::function<Status(int port, cluster::LocalWorkers& local)>& start);

}  // namespace ostro::cli
