#include "ostro/cli/launch/slurm_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "ostro/base/net/listen.h"
#include "ostro/base/sha256.h"
#include "ostro/base/user_cache.h"
#include "ostro/cli/launch/launch_job.h"
#include "ostro/cli/launch/worker_words.h"
#include "ostro/cluster/slurm/left_out_nodes.h"
#include "ostro/io/files/path.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

constexpr int64_t kMostLeftOut = 30 * 24 * 3600;  // seconds

Status check_numbers(const SlurmCall& call) {
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

// Workers look for a relative folder of runs below the folder in which they run.
Status check_folder(const SlurmCall& call, const train::TrainConfig& config) {
  if (shares_nothing(call, config) && call.bring.on)
    return invalid_argument(
        fmt::format("--bring: trainer.log_dir, {}, is in an object store, so there is no folder for a copy "
                    "beside it; name one by --jobs, on a disk that this machine and the nodes share, for "
                    "instance below your home",
                    config.trainer.log_dir));
  if (run_in_object_store(config)) return {};
  if (call.folder.empty() || std::filesystem::path(config.trainer.log_dir).is_absolute()) return {};
  return invalid_argument(
      fmt::format("--folder {}: the workers would look for trainer.log_dir, '{}', there, and this command "
                  "looks in the current folder; let trainer.log_dir be an absolute path",
                  call.folder, config.trainer.log_dir));
}

}  // namespace

Status check_slurm_call(const SlurmCall& call, const train::TrainConfig& config) {
  RETURN_IF_ERROR(check_numbers(call));
  return check_folder(call, config);
}

Result<std::pair<int64_t, int64_t>> slurm_node_counts(const std::string& text) {
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

bool run_in_object_store(const train::TrainConfig& config) {
  return !io::path_scheme(config.trainer.log_dir).empty();
}

bool shares_nothing(const SlurmCall& call, const train::TrainConfig& config) {
  return run_in_object_store(config) && call.jobs.empty();
}

Result<cluster::SlurmWorker> slurm_worker(const SlurmCall& call, const train::TrainConfig& config,
                                          std::vector<std::string> words) {
  std::error_code error;
  std::filesystem::path run = train::run_directory(config);
  if (!run_in_object_store(config)) run = std::filesystem::absolute(run, error).lexically_normal();
  if (error) return io_error(fmt::format("the current folder: {}", error.message()));
  cluster::SlurmWorker worker;
  worker.name = "ostro-";
  for (const char c : run.filename().string())
    worker.name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ? c : '_';
  const Sha256Digest digest = Sha256().update(run.string()).finish();
  worker.name += fmt::format("-{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3]);
  worker.spooled = shares_nothing(call, config);
  worker.any_folder = worker.spooled && call.folder.empty();
  std::string jobs = call.jobs;
  if (worker.spooled) {
    const std::filesystem::path caches = user_cache_folder();
    if (caches.empty())
      return invalid_argument(
          "neither XDG_CACHE_HOME nor HOME names a folder for the job's secret; set one, or give --jobs");
    jobs = caches / "ostro/slurm";  // of this machine, for the next launcher
  }
  worker.directory =
      jobs.empty() ? (run / "slurm").string() : io::join_path(io::absolute_path(jobs), worker.name);
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

}  // namespace ostro::cli
