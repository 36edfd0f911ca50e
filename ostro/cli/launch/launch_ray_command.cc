// ostro launch ray
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "ostro/base/run_program.h"
#include "ostro/cli/launch/worker_words.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cluster/ray/ray_python.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

// Replaces this process by another program. Returns when that failed.
Error become(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(pointers[0], pointers.data());
  return io_error(
      fmt::format("cannot start {}: {}; OSTRO_PYTHON names another Python", words[0], std::strerror(errno)));
}

struct RayCall {
  std::string address = "auto", resources, program, slice_label;
  int64_t min_workers = 1, max_workers = 1, cpus = 1, port = 0, failures = 3, left_out = 600;
  std::optional<int64_t> wait;
};

Status check(const RayCall& call, const train::TrainConfig& config) {
  RETURN_IF_ERROR(check_workers(call.min_workers, call.max_workers, config));
  RETURN_IF_ERROR(cluster::check_ray_resources("--resources_per_worker", call.resources, "{\"slot\": 1}"));
  if (call.cpus < 0 || call.cpus > 1024)
    return invalid_argument(fmt::format("--cpus_per_worker: {} is not a number from 0 to 1024", call.cpus));
  if (call.port < 0 || call.port > 65535)
    return invalid_argument(fmt::format("--port: {} is not a number from 0 to 65535", call.port));
  if (call.failures < 0)
    return invalid_argument(fmt::format("--failures: {} is negative; 0 leaves no node out", call.failures));
  constexpr int64_t kLongest = 30 * 24 * 3600;
  if (call.left_out < 1 || call.left_out > kLongest)
    return invalid_argument(
        fmt::format("--left_out: {} is not a number from 1 to {} seconds", call.left_out, kLongest));
  if (call.wait && *call.wait < 0)
    return invalid_argument(fmt::format("--wait: {} seconds; 0 at least", *call.wait));
  return Status();
}

Error launch_on_ray(RayCall& call, const train::TrainConfig& config, const std::vector<std::string>& typed) {
  const auto python = cluster::ray_python("ostro launch ray");
  if (!python.ok()) return python.error();
  auto path = own_path();
  if (!path.ok()) return path.error();
  std::vector<std::string> words = {*python,
                                    "-m",
                                    "ostro_ray",
                                    "--ostro",
                                    *path,
                                    "--program",
                                    call.program.empty() ? *path : call.program,
                                    "--address",
                                    call.address,
                                    "--min_workers",
                                    std::to_string(call.min_workers),
                                    "--max_workers",
                                    std::to_string(call.max_workers),
                                    "--cpus_per_worker",
                                    std::to_string(call.cpus),
                                    "--port",
                                    std::to_string(call.port)};
  if (!call.resources.empty()) words.insert(words.end(), {"--resources_per_worker", call.resources});
  if (!call.slice_label.empty()) words.insert(words.end(), {"--slice_label", call.slice_label});
  words.insert(words.end(),
               {"--failures", std::to_string(call.failures), "--left_out", std::to_string(call.left_out)});
  if (call.wait) words.insert(words.end(), {"--wait", std::to_string(*call.wait)});
  words.insert(words.end(), {"--stop_timeout", std::to_string(config.trainer.stop_timeout.seconds)});
  words.emplace_back("--");
  auto kept = with_kept_config(
      config, worker_words(typed, {"--address", "--min_workers", "--max_workers", "--cpus_per_worker",
                                   "--port", "--resources_per_worker", "--wait", "--program", "--slice_label",
                                   "--failures", "--left_out"}));
  if (!kept.ok()) return kept.error();
  words.insert(words.end(), kept->begin(), kept->end());
  return become(words);
}

}  // namespace

int launch_ray_command(Args args) {
  RayCall call;
  bool amend = false;
  args.summary(
      "Trains on a Ray cluster: asks it for max_workers workers, trains as soon as there are min_workers, "
      "and "
      "replaces those that are lost. The run's hash is the one of ostro train. Needs a Python with the "
      "packages "
      "ray and ostro_ray: python3, or OSTRO_PYTHON.");
  args.option("--address", &call.address, "ADDRESS",
              "of the cluster, HOST:PORT; auto: the one of this machine");
  args.option("--min_workers", &call.min_workers, "N", "training goes on with so many workers",
              Args::kRequired);
  args.option("--max_workers", &call.max_workers, "N", "how many workers the cluster is asked for",
              Args::kRequired);
  args.option("--cpus_per_worker", &call.cpus, "N",
              "CPUs that a worker asks Ray for; also its OSTRO_THREADS, unless that is set");
  args.option("--resources_per_worker", &call.resources, "JSON",
              "other resources that a worker asks Ray for, for instance {\"GPU\": 1}");
  args.option("--slice_label", &call.slice_label, "LABEL",
              "a label of Ray's nodes: its value is the name of the slice of the workers there; without it: "
              "OSTRO_SLICE of the node's `ray start`");
  args.option("--failures", &call.failures, "N",
              "a node on which N workers in a row failed is left out; 0: none is");
  args.option("--left_out", &call.left_out, "SECONDS", "so long; then it is tried again");
  args.option("--program", &call.program, "PATH",
              "this program on the nodes; without it: the same path as here");
  args.option("--port", &call.port, "N", "where the coordinator listens; 0: any free one");
  args.option("--wait", &call.wait, "SECONDS",
              "how long the cluster may have no room for min_workers; without it: for ever");
  args.flag("--amend", &amend, "as of ostro train");
  args.config();
  if (auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  if (const Status good = check(call, *config); !good.ok()) return report_error(good.error());
  return report_error(launch_on_ray(call, *config, args.typed()));
}

}  // namespace ostro::cli
