#include "ostro/cli/launch/launch_slurm_jobs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/net/host_port.h"
#include "ostro/cli/launch/launch_job.h"
#include "ostro/cli/launch/slurm_folder.h"
#include "ostro/cli/launch/worker_words.h"
#include "ostro/cluster/slurm/end_jobs.h"
#include "ostro/cluster/slurm/environment_file.h"
#include "ostro/cluster/slurm/private_file.h"
#include "ostro/cluster/slurm/run_jobs.h"
#include "ostro/cluster/wire/addresses.h"
#include "ostro/io/files/path.h"
#include "ostro/run/job/coordinator_options.h"
#include "ostro/run/job/time_limits.h"

namespace ostro::cli {
namespace {

const std::set<std::string> kSlurmFlags = {"--requeue", "--dry_run", "--bring"};
const std::set<std::string> kSlurmOwn = {
    "--nodes",  "--workers_per_node", "--sbatch", "--grace",  "--bind",     "--port",     "--program",
    "--folder", "--device",           "--jobs",   "--slices", "--failures", "--left_out", "--bring_mib"};
constexpr std::chrono::hours kCopyTouched{1};  // how often the copy that jobs use is touched

// Starts the coordinator, at the port that jobs of an earlier launcher know if it can.
Result<std::unique_ptr<cluster::Coordinator>> start_coordinator(cluster::CoordinatorOptions options,
                                                                const SlurmCall& call, int earlier_port) {
  options.port = call.port ? static_cast<int>(*call.port) : earlier_port;
  auto coordinator = cluster::Coordinator::start(options);
  if (coordinator.ok() || call.port || earlier_port == 0 || coordinator.error().code() != ErrorCode::kBusy)
    return coordinator;
  options.port = 0;
  auto other = cluster::Coordinator::start(options);
  if (other.ok())
    log_warning(
        fmt::format("port {}, which an earlier launcher of this run had, is in use; workers that look "
                    "for it there cannot be taken over",
                    earlier_port));
  return other;
}

// Whether a signal came more than two seconds after the first: one that comes sooner may say the same, since
// a terminal and a shell both tell.
std::function<bool()> hurried(const run::StopSignals& signals) {
  using Clock = std::chrono::steady_clock;
  return [&signals, first = std::optional<Clock::time_point>(), heard = 0]() mutable {
    if (signals.count() == 0) return false;
    if (!first) first = Clock::now();
    if (Clock::now() - *first > std::chrono::seconds(2)) return signals.count() > heard;
    heard = signals.count();
    return false;
  };
}

// Touches the file now and then, so that the copy in which it is counts as in use; "": there is none.
std::function<void()> touching(const std::string& file) {
  using Clock = std::chrono::steady_clock;
  return [file, touched = std::optional<Clock::time_point>()]() mutable {
    if (file.empty() || (touched && Clock::now() - *touched <= kCopyTouched)) return;
    std::error_code error;  // that the copy is gone is told by the jobs
    std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now(), error);
    touched = Clock::now();
  };
}

}  // namespace

Result<int> launch_slurm_jobs(const SlurmCall& call, const train::TrainConfig& config, const Context& context,
                              const std::vector<std::string>& typed) {
  ASSIGN_OR_RETURN(const auto nodes, slurm_node_counts(call.nodes));
  RETURN_IF_ERROR(check_slurm_call(call, config));
  const int64_t least = nodes.first * call.workers, most = nodes.second * call.workers;
  RETURN_IF_ERROR(check_worker_count(
      most, fmt::format("--nodes {} --workers_per_node {}", call.nodes, call.workers), config));
  const auto words = call.bring.on ? brought_words(call.amend) : worker_words(typed, kSlurmOwn, kSlurmFlags);
  ASSIGN_OR_RETURN(cluster::SlurmWorker worker,
                   slurm_worker(call, config, call.bring.on ? words : naming_kept_config(config, words)));
  // With --jobs workers read their configuration from a disk, also where the run is in an object store.
  const std::string config_file = io::join_path(worker.directory, kLaunchFile);
  const bool beside = run_in_object_store(config) && !worker.spooled;
  if (beside && !call.bring.on) worker.words = with_config(worker.words, config_file);
  if (call.dry_run) {
    print_slurm_scripts(worker);
    return 0;
  }
  ASSIGN_OR_RETURN(cluster::CoordinatorOptions options, run::coordinator_options(config, least, most));
  options.bind = call.bind;
  if (call.bind.empty()) {
    auto address = cluster::address_of_this_machine();
    if (!address.ok()) return address.error().with_context("--bind names one; without it");
    options.bind = *address;
  }
  io::FileSystem& fs = context.fs;
  RETURN_IF_ERROR(make_slurm_folder(call, worker, fs));
  if (call.bring.on) RETURN_IF_ERROR(bring_beside(call, config, context, worker));
  const std::string file = cluster::slurm_environment_file(worker);
  // What an earlier launcher of this run, which was killed, has told its jobs.
  const cluster::SlurmEnvironment earlier = cluster::read_slurm_environment(file);
  options.secret = job_secret(earlier.secret);
  std::atomic<int64_t> events = 0;
  options.observer = [&](const cluster::Event&) { ++events; };
  cluster::WorkerOutput output(fs, output_folder(config));
  keep_output(options, output);
  RETURN_IF_ERROR(with_kept_config(config, words));
  const run::StopSignals signals;
  ASSIGN_OR_RETURN(const auto coordinator, start_coordinator(options, call, earlier.port));
  ASSIGN_OR_RETURN(const auto monitor, watch_job(config, "ostro launch slurm", *coordinator));
  const auto run_all = [&]() -> Result<int> {
    const cluster::SlurmEnvironment told{options.bind, coordinator->port(), options.secret};
    const cluster::SlurmQueue queue(worker.name, cluster::hidden_from_slurm(environ));
    // What jobs know comes with their script. It is kept when none is left that knows something else.
    if (worker.spooled && earlier != told) RETURN_IF_ERROR(cluster::end_strange_jobs(queue));
    const char* const nothing[] = {nullptr};
    RETURN_IF_ERROR(cluster::write_slurm_environment(file, told, worker.spooled ? nothing : environ));
    if (beside) RETURN_IF_ERROR(cluster::write_private_file(config_file, kept_config_text(config)));
    if (!worker.spooled) {
      RETURN_IF_ERROR(cluster::write_private_file(slurm_job_file(worker), cluster::batch_script(worker)));
      RETURN_IF_ERROR(
          cluster::write_private_file(slurm_worker_file(worker), cluster::slurm_worker_script(worker)));
    }
    cluster::SlurmRun run;
    run.limits = {.least = nodes.first,
                  .count = nodes.second,
                  .left_out_after = call.failures,
                  .left_out_for = std::chrono::seconds(call.left_out)};
    run.excluded = cluster::excluded_by(call.sbatch);
    run.queue = &queue;
    run.script = slurm_job_file(worker);
    if (worker.spooled)
      run.script_text = cluster::batch_script(worker, cluster::slurm_environment_text(told, environ));
    run.last_words = [&](const std::string& job) { return slurm_last_words(worker, fs, job); };
    run.if_interrupted = cluster::kExitInterrupted;
    run.look = [&, asked = false, touch = touching(worker.touched)]() mutable {
      touch();
      if (!signals.stop_requested() || std::exchange(asked, true)) return;
      log_info("asking the workers to save and to end; a second signal cancels their jobs without waiting");
      coordinator->stop_run();
    };
    run.events = [&] { return events.load(); };
    run.progress = [&] { return coordinator->steps_done(); };
    run.members = [&] { return coordinator->members(); };
    run.over = look_for_end(*coordinator);
    run.stopping = [&] { return signals.stop_requested(); };
    run.hurried = hurried(signals);
    run.stop = [&] { coordinator->stop_run(); };
    run.stop_grace = run::stop_limit(config.trainer);
    log_info(fmt::format("the coordinator listens at {}; what jobs write is in {}",
                         host_and_port(options.bind, coordinator->port()),
                         worker.spooled ? cluster::slurm_output_pattern(worker, "JOB") + " of their nodes"
                                        : worker.directory));
    const auto code = cluster::run_slurm_jobs(run);
    if (code.ok()) ::unlink(file.c_str());  // otherwise jobs of an earlier launcher may need it
    return code;
  };
  return end_watch(*monitor, run_all());
}

}  // namespace ostro::cli
