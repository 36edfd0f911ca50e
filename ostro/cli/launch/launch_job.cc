#include "ostro/cli/launch/launch_job.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/run_program.h"
#include "ostro/io/files/path.h"
#include "ostro/objects/s3/routing_file_system.h"
#include "ostro/run/job/time_limits.h"

namespace ostro::cli {

std::string job_secret(const std::string& earlier) {
  const char* given = std::getenv("OSTRO_JOB_SECRET");
  if (given != nullptr && *given != '\0') return given;
  if (!earlier.empty()) return earlier;
  std::random_device device;
  std::string secret;
  for (int i = 0; i < 8; ++i) secret += fmt::format("{:08x}", device());
  return secret;
}

std::function<void()> look_for_stop(const run::StopSignals& signals, cluster::Coordinator& coordinator) {
  return [&signals, &coordinator, heard = 0]() mutable {
    if (signals.count() == std::exchange(heard, signals.count())) return;
    if (heard == 1) log_info("asking the workers to save and to end");
    if (heard > 1) log_info("the workers save; once more ends them without it");
    coordinator.stop_run();
  };
}

std::function<std::optional<int>()> look_for_end(cluster::Coordinator& coordinator) {
  return [&coordinator]() -> std::optional<int> {
    const auto status = coordinator.over();
    return status ? std::optional(static_cast<int>(*status)) : std::nullopt;
  };
}

std::string output_folder(const train::TrainConfig& config) {
  return io::join_path(train::run_directory(config), "stderr");
}

void keep_output(cluster::CoordinatorOptions& options, cluster::WorkerOutput& output) {
  options.on_said = [&output](const cluster::Hello& hello, std::string_view bytes) {
    output.said(hello.host, hello.pid, bytes);
  };
  options.observer = [&output, next = std::move(options.observer)](const cluster::Event& event) {
    using Kind = cluster::Event::Kind;
    if (event.kind == Kind::kLost || event.kind == Kind::kLeft)
      output.gone(event.workers.at(0).host, event.workers.at(0).pid, event.why);
    if (next) next(event);
  };
}

Result<std::unique_ptr<monitor::Monitor>> watch_job(const train::TrainConfig& config, const std::string& what,
                                                    const cluster::Coordinator& coordinator) {
  ASSIGN_OR_RETURN(auto out, monitor::Monitor::create(objects::default_file_system(), config));
  out->begin(what, [&coordinator] { return coordinator.watched(); });
  return out;
}

Result<int> end_watch(monitor::Monitor& monitor, Result<int> status) {
  if (!status.ok())
    monitor.end("failed: " + status.error().message());
  else if (*status == 0)
    monitor.end("finished");
  else if (*status == cluster::kExitInterrupted)
    monitor.end("saved and stopped");
  else
    monitor.end(fmt::format("failed: the job ended with status {}", *status));
  return status;
}

Result<WorkerPlace> worker_place(const std::string& folder, const std::string& program) {
  WorkerPlace place{folder, program};
  std::error_code error;
  if (folder.empty()) place.folder = std::filesystem::current_path(error).string();
  if (error) return io_error(fmt::format("the current folder: {}", error.message()));
  if (program.empty()) {
    ASSIGN_OR_RETURN(place.program, own_path());
  }
  return place;
}

Result<int> run_job(const train::TrainConfig& config, const std::string& what,
                    const cluster::CoordinatorOptions& options, cluster::LocalWorkers local,
                    const std::function<Status(int port, cluster::LocalWorkers& local)>& start) {
  ASSIGN_OR_RETURN(const auto coordinator, cluster::Coordinator::start(options));
  ASSIGN_OR_RETURN(const auto monitor, watch_job(config, what, *coordinator));
  const auto run_all = [&]() -> Result<int> {
    RETURN_IF_ERROR(start(coordinator->port(), local));
    local.output_folder = output_folder(config);
    const run::StopSignals signals;
    local.look = look_for_stop(signals, *coordinator);
    local.stopping = [&] { return signals.stop_requested(); };
    local.stop = [&] { coordinator->stop_run(); };
    local.stop_grace = run::stop_limit(config.trainer);
    local.over = look_for_end(*coordinator);
    local.progress = [&] { return coordinator->steps_done(); };
    return cluster::run_local_workers(local);
  };
  return end_watch(*monitor, run_all());
}

}  // namespace ostro::cli
