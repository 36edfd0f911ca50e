// ostro launch slurm
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/net/host_port.h"
#include "ostro/base/net/listen.h"
#include "ostro/base/sha256.h"
#include "ostro/cli/launch/bring_to_hosts.h"
#include "ostro/cli/launch/brought_run.h"
#include "ostro/cli/launch/launch_job.h"
#include "ostro/cli/launch/worker_words.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cluster/slurm/batch_script.h"
#include "ostro/cluster/slurm/environment_file.h"
#include "ostro/cluster/slurm/private_file.h"
#include "ostro/cluster/slurm/run_jobs.h"
#include "ostro/cluster/wire/addresses.h"
#include "ostro/io/files/path.h"
#include "ostro/run/job/coordinator_options.h"
#include "ostro/run/job/time_limits.h"
#include "ostro/shell/words/exit_code.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {
namespace {

struct SlurmCall {
  std::string nodes, sbatch, bind, program, folder, jobs, slices;
  int64_t workers = 1, grace = 120, failures = 3, left_out = 600;
  std::optional<int64_t> port;
  bool requeue = false, dry_run = false, amend = false;
  BringOptions bring;
};

const std::set<std::string> kSlurmFlags = {"--requeue", "--dry_run", "--bring"};
const std::set<std::string> kSlurmOwn = {
    "--nodes",  "--workers_per_node", "--sbatch", "--grace",  "--bind",     "--port",     "--program",
    "--folder", "--device",           "--jobs",   "--slices", "--failures", "--left_out", "--bring_mib"};
constexpr int64_t kMostLeftOut = 30 * 24 * 3600;  // seconds
constexpr std::chrono::hours kCopyTouched{1};     // how often the copy that jobs use is touched

// MIN:MAX, or one number for both.
Result<std::pair<int64_t, int64_t>> node_counts(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string parts[] = {text.substr(0, colon),
                               colon == std::string::npos ? text : text.substr(colon + 1)};
  int64_t numbers[2] = {0, 0};
  bool good = true;
  for (int i = 0; i < 2; ++i) {
    const char* end = parts[i].data() + parts[i].size();
    const auto [at, error] = std::from_chars(parts[i].data(), end, numbers[i]);
    good = good && error == std::errc() && at == end;
  }
  if (!good || numbers[0] < 1 || numbers[0] > numbers[1] || numbers[1] > kMostWorkers)
    return invalid_argument(fmt::format(
        "--nodes: '{}' is not MIN:MAX, two numbers with 1 <= MIN <= MAX <= {}, as 4:16", text, kMostWorkers));
  return std::pair(numbers[0], numbers[1]);
}

Status check(const SlurmCall& call) {
  if (call.workers < 1 || call.workers > kMostWorkers)
    return invalid_argument(
        fmt::format("--workers_per_node: {} is not a number from 1 to {}", call.workers, kMostWorkers));
  if (call.grace < 0 || call.grace > 65535)
    return invalid_argument(
        fmt::format("--grace: {} seconds is not a number from 0 to 65535, as Slurm takes it", call.grace));
  if (call.failures < 0)
    return invalid_argument(fmt::format("--failures: {} is negative; 0 leaves no node out", call.failures));
  if (call.left_out < 1 || call.left_out > kMostLeftOut)
    return invalid_argument(
        fmt::format("--left_out: {} is not a number from 1 to {} seconds", call.left_out, kMostLeftOut));
  if (is_any_address(call.bind))
    return invalid_argument(fmt::format(
        "--bind: {} is no address that the nodes could be told; name one of this machine", call.bind));
  if (call.port && (*call.port < 0 || *call.port > 65535))
    return invalid_argument(fmt::format("--port: {} is not a number from 0 to 65535", *call.port));
  if (!call.slices.empty() && std::find(cluster::kSlurmSlices.begin(), cluster::kSlurmSlices.end(),
                                        call.slices) == cluster::kSlurmSlices.end())
    return invalid_argument(fmt::format("--slices: '{}' is none of the words {}", call.slices,
                                        fmt::join(cluster::kSlurmSlices, ", ")));
  if (call.bring.on && (!call.program.empty() || !call.folder.empty()))
    return invalid_argument(
        "--bring: the copy has a program and a folder of its own; leave out --program and --folder");
  if (call.bring.on && call.dry_run)
    return invalid_argument(
        "--bring: --dry_run copies nothing, so that its scripts would name no program; leave one out");
  RETURN_IF_ERROR(check_bring(call.bring));
  if (call.failures > 0) RETURN_IF_ERROR(cluster::check_excluded(call.sbatch));
  return cluster::check_sbatch_options(call.sbatch);
}

// Copies what workers need beside the scripts, which the nodes see, and says where it is.
Status bring_beside(const SlurmCall& call, const train::TrainConfig& config, const Context& context,
                    cluster::SlurmWorker& worker) {
  BringOptions options = call.bring;
  options.to = io::join_path(worker.directory, "copies");
  ASSIGN_OR_RETURN(const BroughtRun brought, brought_run(context, config, options));
  BringToHosts bringer(context.fs, brought.copy, {"this machine"}, [](size_t, const std::string& script) {
    return cluster::LineProcess::start({"sh", "-c", script});
  });
  const auto enough = [](const std::vector<bool>& has) { return has[0]; };
  if (!bringer.all(context.progress, enough)[0])
    return io_error(
        fmt::format("--bring: nothing could be copied to {}; what was said before names why", *options.to));
  worker.folder = brought.folder;
  worker.touched = io::join_path(brought.copy.place(), "list");
  worker.program = io::join_path(brought.copy.place(), brought.copy.program);
  return {};
}

bool in_object_store(const train::TrainConfig& config) {
  return !io::path_scheme(config.trainer.log_dir).empty();
}

// Workers look for a relative folder of runs below the folder in which they run.
Status check_folder(const SlurmCall& call, const train::TrainConfig& config) {
  if (in_object_store(config) && call.jobs.empty())
    return invalid_argument(fmt::format(
        "trainer.log_dir: {} is in an object store, where Slurm can neither read scripts nor write "
        "what jobs say; name a folder for them by --jobs, on a disk that this machine and the "
        "nodes share, for instance below your home",
        config.trainer.log_dir));
  if (in_object_store(config)) return {};
  if (call.folder.empty() || std::filesystem::path(config.trainer.log_dir).is_absolute()) return {};
  return invalid_argument(
      fmt::format("--folder {}: the workers would look for trainer.log_dir, '{}', there, and this command "
                  "looks in the current folder; let trainer.log_dir be an absolute path",
                  call.folder, config.trainer.log_dir));
}

Result<cluster::SlurmWorker> slurm_worker(const SlurmCall& call, const train::TrainConfig& config,
                                          std::vector<std::string> words) {
  std::error_code error;
  std::filesystem::path run = train::run_directory(config);
  if (!in_object_store(config)) run = std::filesystem::absolute(run, error).lexically_normal();
  if (error) return io_error(fmt::format("the current folder: {}", error.message()));
  cluster::SlurmWorker worker;
  worker.name = "ostro-";
  for (const char c : run.filename().string())
    worker.name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ? c : '_';
  const Sha256Digest digest = Sha256().update(run.string()).finish();
  worker.name += fmt::format("-{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3]);
  worker.directory =
      call.jobs.empty() ? (run / "slurm").string() : io::join_path(io::absolute_path(call.jobs), worker.name);
  RETURN_IF_ERROR(cluster::check_slurm_directory(worker.directory));
  ASSIGN_OR_RETURN(const WorkerPlace place, worker_place(call.folder, call.program));
  worker.folder = place.folder, worker.program = place.program;
  worker.words = std::move(words);
  worker.workers = call.workers;
  worker.gpu_each = call.workers > 1 && config.trainer.device == "cuda";
  if (call.workers > 1 && !worker.gpu_each && config.trainer.device != "cpu")
    worker.words.insert(worker.words.end(), {"--sharers", std::to_string(call.workers)});
  worker.requeue = call.requeue;
  worker.grace = call.grace;
  worker.options = call.sbatch;
  worker.slices = call.slices;
  worker.if_interrupted = cluster::kExitInterrupted;
  worker.if_left = cluster::kExitLeft;
  worker.if_lost = cluster::kExitLostPlace;
  return worker;
}

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

// The last lines of what a job wrote.
std::string last_lines(io::FileSystem& fs, const std::string& file) {
  constexpr size_t kLines = 5;
  const auto text = fs.read_file(file);
  if (!text.ok()) return "";
  std::string out = *text;
  while (!out.empty() && out.back() == '\n') out.pop_back();
  size_t at = out.size();
  for (size_t n = 0; n < kLines && at != std::string::npos && at > 0; ++n) at = out.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? out : out.substr(at + 1);
}

Result<int> launch_jobs(const SlurmCall& call, const train::TrainConfig& config, const Context& context,
                        const std::vector<std::string>& typed) {
  ASSIGN_OR_RETURN(const auto nodes, node_counts(call.nodes));
  RETURN_IF_ERROR(check(call));
  RETURN_IF_ERROR(check_folder(call, config));
  const int64_t least = nodes.first * call.workers, most = nodes.second * call.workers;
  RETURN_IF_ERROR(check_worker_count(
      most, fmt::format("--nodes {} --workers_per_node {}", call.nodes, call.workers), config));
  const auto words = call.bring.on ? brought_words(call.amend) : worker_words(typed, kSlurmOwn, kSlurmFlags);
  ASSIGN_OR_RETURN(cluster::SlurmWorker worker,
                   slurm_worker(call, config, call.bring.on ? words : naming_kept_config(config, words)));
  // Workers read their configuration from a disk.
  const std::string config_file = io::join_path(worker.directory, kLaunchFile);
  if (in_object_store(config) && !call.bring.on) worker.words = with_config(worker.words, config_file);
  const std::string job_file = io::join_path(worker.directory, "job.sh");
  const std::string worker_file = io::join_path(worker.directory, "worker.sh");
  if (call.dry_run) {
    fmt::print("# {}\n{}\n# {}\n{}", job_file, cluster::batch_script(worker), worker_file,
               cluster::slurm_worker_script(worker));
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
  if (call.jobs.empty()) {
    RETURN_IF_ERROR(fs.make_dirs(worker.directory));
  } else {  // others may know this folder's name, and may write the one in which it lies
    RETURN_IF_ERROR(fs.make_dirs(io::absolute_path(call.jobs)));
    const Status made = cluster::make_private_folder(worker.directory);
    if (!made.ok()) return made.error().with_context("--jobs");
  }
  if (call.bring.on) RETURN_IF_ERROR(bring_beside(call, config, context, worker));
  const std::string file = cluster::slurm_environment_file(worker);
  // What an earlier launcher of this run, which was killed, has told its jobs.
  const cluster::SlurmEnvironment earlier = cluster::read_slurm_environment(file);
  options.secret = job_secret(earlier.secret);
  std::atomic<int64_t> events = 0;
  options.observer = [&](const cluster::Event&) { ++events; };
  RETURN_IF_ERROR(with_kept_config(config, words));
  const run::StopSignals signals;
  ASSIGN_OR_RETURN(const auto coordinator, start_coordinator(options, call, earlier.port));
  ASSIGN_OR_RETURN(const auto monitor, watch_job(config, "ostro launch slurm", *coordinator));
  const auto run_all = [&]() -> Result<int> {
    RETURN_IF_ERROR(
        cluster::write_slurm_environment(file, {options.bind, coordinator->port(), options.secret}, environ));
    if (in_object_store(config))
      RETURN_IF_ERROR(cluster::write_private_file(config_file, kept_config_text(config)));
    RETURN_IF_ERROR(cluster::write_private_file(job_file, cluster::batch_script(worker)));
    RETURN_IF_ERROR(cluster::write_private_file(worker_file, cluster::slurm_worker_script(worker)));
    const cluster::SlurmQueue queue(worker.name, cluster::hidden_from_slurm(environ));
    cluster::SlurmRun run;
    run.limits = {.least = nodes.first,
                  .count = nodes.second,
                  .left_out_after = call.failures,
                  .left_out_for = std::chrono::seconds(call.left_out)};
    run.excluded = cluster::excluded_by(call.sbatch);
    run.queue = &queue;
    run.script = job_file;
    run.last_words = [&](const std::string& job) {
      return last_lines(fs, io::join_path(worker.directory, job + ".out"));
    };
    run.if_interrupted = cluster::kExitInterrupted;
    run.look = [&, told = false, touched = std::chrono::steady_clock::time_point()]() mutable {
      if (const auto now = std::chrono::steady_clock::now();
          !worker.touched.empty() && now - touched > kCopyTouched) {
        std::error_code error;  // that the copy is gone is told by the jobs
        std::filesystem::last_write_time(worker.touched, std::filesystem::file_time_type::clock::now(),
                                         error);
        touched = now;
      }
      if (!signals.stop_requested() || std::exchange(told, true)) return;
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
                         host_and_port(options.bind, coordinator->port()), worker.directory));
    const auto code = cluster::run_slurm_jobs(run);
    if (code.ok()) ::unlink(file.c_str());  // otherwise jobs of an earlier launcher may need it
    return code;
  };
  return end_watch(*monitor, run_all());
}

}  // namespace

int launch_slurm_command(Args args) {
  SlurmCall call;
  args.summary(
      "Trains on a Slurm cluster: keeps a job for each of MAX nodes in the queue, trains as soon as workers "
      "of MIN nodes are there, and replaces jobs that are lost or taken away. The run's hash is the one of "
      "ostro train. The coordinator runs in this process, which must be able to run sbatch, squeue and "
      "scancel. All nodes see the run's folder, the data and the program under the same paths; the first two "
      "may "
      "be in an object store.");
  args.option("--nodes", &call.nodes, "MIN:MAX", "train on as few nodes, and on so many at most",
              Args::kRequired);
  args.option("--workers_per_node", &call.workers, "N",
              "on each node; with --device cuda each takes the GPU of its number");
  args.option("--sbatch", &call.sbatch, "WORDS",
              "further options of sbatch for each job, for instance '--partition=long --account=a1 "
              "--time=4:00:00 --gres=gpu:1 --cpus-per-task=16'");
  args.flag("--requeue", &call.requeue,
            "Slurm itself starts a job again that it took away: it keeps its number; without this a new job "
            "takes its place");
  args.option("--grace", &call.grace, "SECONDS",
              "before a job's limit of time its workers leave; 0: they are not told");
  args.option(
      "--failures", &call.failures, "N",
      "a node on which N jobs in a row failed is left out by the next ones (sbatch --exclude); 0: none is");
  args.option("--left_out", &call.left_out, "SECONDS", "so long; then it is tried again");
  args.option("--program", &call.program, "PATH",
              "this program on the nodes; without it: the same path as here");
  args.option("--jobs", &call.jobs, "DIR",
              "for scripts, what jobs write and the file with the secret: a folder that this machine and the "
              "nodes share; each run has one of its own in it. Without it: slurm in the run's folder");
  args.option("--slices", &call.slices, "WORD",
              "what names the slice of a job's workers: partition, that of the job; switch, those above its "
              "node, where Slurm knows the topology; node: each is one");
  args.option("--folder", &call.folder, "DIR", "where the workers run; without it: the current folder");
  args.flag("--bring", &call.bring.on,
            "copies this program, the configuration, the tokenizer and token stores beside the scripts, so "
            "that the "
            "nodes need not see where they are");
  take_bring_mib(args, call.bring);
  args.option(
      "--bind", &call.bind, "ADDRESS",
      "where the coordinator listens on this machine, and the nodes reach it; without it: the address "
      "of this machine's name");
  args.option("--port", &call.port, "N", "where the coordinator listens; 0: any free one");
  args.flag("--dry_run", &call.dry_run, "print the scripts, and submit nothing");
  args.flag("--amend", &call.amend, "as of ostro train");
  args.device();
  args.config();
  if (auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const auto code = launch_jobs(call, *config, args.context(), args.typed());
  return code.ok() ? *code : report_error(code.error());
}

}  // namespace ostro::cli
