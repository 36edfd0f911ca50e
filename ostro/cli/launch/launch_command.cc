// ostro launch
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/run_program.h"
#include "ostro/base/text_parts.h"
#include "ostro/cli/launch/launch_job.h"
#include "ostro/cli/launch/worker_words.h"
#include "ostro/cli/main/commands.h"
#include "ostro/engines/devices.h"
#include "ostro/run/job/coordinator_options.h"
#include "ostro/run/report/console.h"
#include "ostro/runtime/device_name.h"
#include "ostro/shell/shared/profile_option.h"
#include "ostro/shell/shared/slice_sizes.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {
namespace {

// Processes of this host that the coordinator has heard nothing from.
class Silent {
 public:
  void add(const cluster::Hello& hello) {
    const std::lock_guard lock(mutex_);
    pids_.push_back(hello.pid);
  }
  std::vector<int64_t> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(pids_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<int64_t> pids_;
};

// The names of --devices, one for each worker; without it all have that of the configuration.
Result<std::vector<std::string>> device_names(const std::string& devices, int64_t workers,
                                              const train::TrainConfig& config) {
  if (devices.empty()) return std::vector<std::string>(static_cast<size_t>(workers), config.trainer.device);
  std::vector<std::string> names = comma_parts(devices);
  if (static_cast<int64_t>(names.size()) != workers)
    return invalid_argument(fmt::format("--devices {}: {} names for {} workers; name one for each worker",
                                        devices, names.size(), workers));
  for (const std::string& name : names) RETURN_IF_ERROR(runtime::parse_device("--devices", name));
  return names;
}

// Tells each worker its device, and its slice if `slices` has names.
Status place_workers(const std::vector<std::string>& names, const std::vector<std::string>& slices,
                     cluster::LocalWorkers& local) {
  ASSIGN_OR_RETURN(const auto devices, engines::devices_of_workers(names));
  std::string told;
  bool on_gpu = false;
  for (const engines::WorkerDevice& d : devices) {
    told += fmt::format("{}{}", told.empty() ? "" : ", ", d.device);
    on_gpu = on_gpu || d.device != "cpu";
    local.more.push_back({"--device", d.device, "--sharers", std::to_string(d.sharers)});
    if (!slices.empty())
      local.more.back().insert(local.more.back().end(), {"--slice", slices[local.more.size() - 1]});
  }
  if (on_gpu) log_info("the devices of the workers: " + told);
  return Status();
}

Result<int> launch(int64_t workers, int64_t min_workers, const train::TrainConfig& config,
                   const std::vector<std::string>& names, const std::vector<std::string>& slices,
                   const std::vector<std::string>& words) {
  cluster::LocalWorkers local;
  local.count = workers;
  local.least = min_workers;
  RETURN_IF_ERROR(place_workers(names, slices, local));
  ASSIGN_OR_RETURN(cluster::CoordinatorOptions options,
                   run::coordinator_options(config, min_workers, workers));
  options.secret = job_secret();
  Silent silent;
  options.on_silence = [&](const cluster::Hello& hello) { silent.add(hello); };
  local.hopeless = [&] { return silent.take(); };
  // This very program, also when its file has been replaced by another build since.
  local.program = "/proc/self/exe";
  local.environment = {{"OSTRO_JOB_SECRET", options.secret}};
  if (std::getenv("OSTRO_THREADS") == nullptr) {
    const int64_t cores = ::sysconf(_SC_NPROCESSORS_ONLN);
    local.environment.emplace_back("OSTRO_THREADS", std::to_string(std::max<int64_t>(1, cores / workers)));
  }
  // The leader's progress line is drawn on this terminal, though through a pipe.
  if (const int columns = run::stderr_columns(); columns > 0)
    local.environment.emplace_back("OSTRO_COLUMNS", std::to_string(columns));
  return run_job(config, "ostro launch local", options, std::move(local),
                 [&](int port, cluster::LocalWorkers& job) -> Status {
                   ASSIGN_OR_RETURN(const std::string path, own_path());
                   job.command = {path, "worker", "--coordinator", fmt::format("127.0.0.1:{}", port)};
                   ASSIGN_OR_RETURN(const auto kept, with_kept_config(config, words));
                   job.command.insert(job.command.end(), kept.begin(), kept.end());
                   return {};
                 });
}

}  // namespace

int launch_local_command(Args args) {
  int64_t workers = 1, min_workers = 1;
  std::string devices, slices, profile;
  bool amend = false;
  args.summary(
      "Trains on several processes of this machine: starts them, and starts those again that are killed. The "
      "run's hash is the one of ostro train. OSTRO_THREADS is the number of threads of each worker.");
  args.option("--workers", &workers, "N", "how many", Args::kRequired);
  args.option("--min_workers", &min_workers, "N",
              "go on with as few when others are lost; 1 by default, or the smallest that the mesh allows");
  args.option(
      "--devices", &devices, "LIST",
      "the device of each worker, for instance cuda,cuda,cpu; cuda takes the GPUs in turn. Without it "
      "all have that of --device");
  args.option(
      "--slices", &slices, "N:N...",
      "groups of workers that count as slices, with slow links between them: how many workers each has, "
      "for instance 2:2; to try out what a cluster of several networks does");
  args.flag("--amend", &amend, "as of ostro train");
  take_profile(args, &profile, "; of the worker of rank N, from 1 on: profile-FIRST-END.N.json");
  args.device();
  args.config();
  if (auto code = args.parse()) return *code;
  if (workers < 1 || workers > kMostWorkers)
    return report_error(
        invalid_argument(fmt::format("--workers: {} is not a number from 1 to {}", workers, kMostWorkers)));
  if (min_workers < 1 || min_workers > workers)
    return report_error(invalid_argument(
        fmt::format("--min_workers: {} is not a number from 1 to --workers, {}", min_workers, workers)));
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  if (const Status mesh = train::check_workers(*config, workers); !mesh.ok())
    return report_error(mesh.error());
  // The workers take it from their words.
  if (const auto range = profile_range(profile, config->trainer.num_train_steps); !range.ok())
    return report_error(range.error());
  const auto names = device_names(devices, workers, *config);
  if (!names.ok()) return report_error(names.error());
  const Result<std::vector<std::string>> slice_of =
      slices.empty() ? std::vector<std::string>() : slice_names("--slices", slices, workers);
  if (!slice_of.ok()) return report_error(slice_of.error());
  const auto code =
      launch(workers, min_workers, *config, *names, *slice_of,
             worker_words(args.typed(), {"--workers", "--min_workers", "--devices", "--slices", "--device"}));
  return code.ok() ? *code : report_error(code.error());
}

int launch_command(Args args) {
  static constexpr Command kVerbs[] = {
      {"local", "workers on this machine", launch_local_command},
      {"ssh", "workers on machines that ssh reaches", launch_ssh_command},
      {"slurm", "workers as jobs of Slurm", launch_slurm_command},
      {"kubernetes", "writes the manifests of pods that train", launch_kubernetes_command},
      {"ray", "workers on a Ray cluster", launch_ray_command},
  };
  return run_verb(std::move(args), kVerbs);
}

}  // namespace ostro::cli
