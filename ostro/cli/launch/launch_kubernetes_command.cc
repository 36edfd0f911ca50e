// ostro launch kubernetes
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <limits>
#include <sstream>
#include <utility>

#include "ostro/base/net/host_port.h"
#include "ostro/cli/launch/launch_job.h"
#include "ostro/cli/launch/worker_words.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cluster/kubernetes/manifests.h"
#include "ostro/cluster/kubernetes/names.h"
#include "ostro/cluster/slurm/private_file.h"
#include "ostro/config/utf8.h"
#include "ostro/http/gate.h"
#include "ostro/io/files/path.h"
#include "ostro/run/job/time_limits.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {
namespace {

constexpr const char* kOwnVolume = "/work";  // where a pod sees its own, without --claim

struct KubernetesCall {
  cluster::KubernetesJob job;
  std::string out, slices;
};

// "ostro-" and the run's id, as far as Kubernetes takes it.
std::string name_of(const std::string& id) {
  std::string name = "ostro-";
  for (const char c : id)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0
                ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                : '-';
  return name;
}

bool is_below(const std::string& folder, const std::string& mount) {
  return folder == mount || folder.starts_with(mount.ends_with('/') ? mount : mount + "/");
}

// What Kubernetes would refuse, or JSON.
Status check_texts(const cluster::KubernetesJob& job) {
  for (const auto& [what, text] : {std::pair{"--image", &job.image},
                                   {"--mount", &job.mount},
                                   {"the current folder", &job.folder},
                                   {"OSTRO_JOB_SECRET", &job.secret},
                                   {"the configuration", &job.config}})
    if (!config::is_utf8(*text)) return invalid_argument(fmt::format("{}: is no UTF-8", what));
  if (job.image.empty() || job.image.find_first_of(" \t\n") != std::string::npos)
    return invalid_argument(fmt::format("--image: \"{}\" names no image", job.image));
  if (!job.claim.empty())
    RETURN_IF_ERROR(cluster::check_kubernetes_object("--claim", job.claim, "PersistentVolumeClaim"));
  if (!job.credentials.empty())
    RETURN_IF_ERROR(cluster::check_kubernetes_object("--credentials", job.credentials, "Secret"));
  for (const auto& [what, text] : {std::pair{"--cpus", &job.cpus}, {"--memory", &job.memory}})
    if (!text->empty()) RETURN_IF_ERROR(cluster::check_kubernetes_quantity(what, *text));
  constexpr size_t kMostDigits = 4;
  if (!job.gpus.empty() && (job.gpus.size() > kMostDigits || job.gpus[0] == '0' ||
                            job.gpus.find_first_not_of("0123456789") != std::string::npos))
    return invalid_argument(
        fmt::format("--gpus: \"{}\" is not a number from 1 to 9999; Kubernetes divides no GPU", job.gpus));
  return {};
}

Status check(const KubernetesCall& call, const train::TrainConfig& config) {
  const cluster::KubernetesJob& job = call.job;
  RETURN_IF_ERROR(cluster::check_kubernetes_name("--name", job.name));
  if (!job.name_space.empty()) RETURN_IF_ERROR(cluster::check_kubernetes_name("--namespace", job.name_space));
  if (job.min_workers < 1 || job.min_workers > job.workers)
    return invalid_argument(fmt::format("--min_workers: {} is not a number from 1 to --workers, {}",
                                        job.min_workers, job.workers));
  RETURN_IF_ERROR(check_worker_count(job.workers, "--workers", config));
  if (job.failures < 0 || job.failures > std::numeric_limits<int32_t>::max())
    return invalid_argument(fmt::format("--failures: {} is not a number from 0 to {}", job.failures,
                                        std::numeric_limits<int32_t>::max()));
  if (job.user < 1) return invalid_argument(fmt::format("--user: {} is no number of a user", job.user));
  const std::vector<std::string> folders = shared_folders(config);
  if (job.claim.empty() && (!folders.empty() || !job.mount.empty()))
    return invalid_argument(
        job.mount.empty()
            ? fmt::format(
                  "{} is a folder, which pods see on a volume: name it by --claim and --mount, or let "
                  "trainer.log_dir and data.cache_dir be in an object store",
                  folders.front())
            : fmt::format("--mount {} says where pods see a volume; --claim must name it", job.mount));
  if (job.claim.empty()) return {};
  if (job.mount.empty())
    return invalid_argument(fmt::format("--claim {}: --mount must say where pods see it", job.claim));
  if (!job.mount.starts_with('/'))
    return invalid_argument(fmt::format("--mount: {} is not absolute", job.mount));
  for (const std::string& folder : folders)
    if (!is_below(folder, job.mount))
      return invalid_argument(
          fmt::format("{} is not below --mount {}, the folder that the pods share; trainer.log_dir and "
                      "data.cache_dir must be",
                      folder, job.mount));
  return {};
}

// NAME:N,NAME:N; all of them together have the workers of the job.
Result<std::vector<cluster::KubernetesSlice>> slices_of(const KubernetesCall& call) {
  const std::string& label = call.job.slice_label;
  if (call.slices.empty() != label.empty())
    return invalid_argument(label.empty()
                                ? fmt::format("--slices {}: --slice_label must say which label of "
                                              "nodes has these values",
                                              call.slices)
                                : fmt::format("--slice_label {}: --slices must say how many workers "
                                              "run on the nodes of each value, as west:8,east:8",
                                              label));
  std::vector<cluster::KubernetesSlice> out;
  int64_t sum = 0;
  std::istringstream parts(call.slices.ends_with(',') ? call.slices + ","
                                                      : call.slices);  // "" is a part, too
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t colon = std::min(part.rfind(':'), part.size());
    cluster::KubernetesSlice slice{part.substr(0, colon), 0};
    const char* const end = part.data() + part.size();
    const char* const begin = colon < part.size() ? part.data() + colon + 1 : end;
    const auto [at, error] = std::from_chars(begin, end, slice.workers);
    if (error != std::errc() || at != end || slice.workers < 1 || slice.workers > kMostWorkers)
      return invalid_argument(fmt::format(
          "--slices: \"{}\" is not NAME:N, a value of the label and a number of workers, as west:8", part));
    RETURN_IF_ERROR(cluster::check_kubernetes_label("--slices and --slice_label", label, slice.name));
    for (const cluster::KubernetesSlice& other : out)
      if (other.name == slice.name)
        return invalid_argument(fmt::format("--slices: {} is there twice; name each slice once", slice.name));
    sum += slice.workers;
    out.push_back(std::move(slice));
  }
  if (!out.empty() && sum != call.job.workers)
    return invalid_argument(fmt::format("--slices {}: {} workers together, but --workers {}; they must agree",
                                        call.slices, sum, call.job.workers));
  return out;
}

Result<std::string> write_manifests(KubernetesCall call, train::TrainConfig config, io::FileSystem& fs) {
  cluster::KubernetesJob& job = call.job;
  if (job.name.empty()) job.name = name_of(config.trainer.id);
  if (job.mount.starts_with('/')) job.mount = io::absolute_path(job.mount);
  RETURN_IF_ERROR(check(call, config));
  ASSIGN_OR_RETURN(job.slices, slices_of(call));
  // Where the command is typed on the volume, relative paths mean the same in the pods. Their own volume is
  // no folder of this machine.
  std::error_code error;
  job.folder = std::filesystem::current_path(error).string();
  const bool is_shared = !job.claim.empty() && !error && is_below(job.folder, job.mount);
  if (job.claim.empty()) job.mount = kOwnVolume;
  if (!is_shared) job.folder = job.mount;
  config.trainer.metrics_listen =
      host_and_port(job.ipv6 ? "::" : "0.0.0.0", static_cast<int>(job.metrics_port));
  job.config = kept_config_text(config);
  job.secret = job_secret();
  job.metrics_token = http::new_token();
  RETURN_IF_ERROR(check_texts(job));
  job.if_interrupted = cluster::kExitInterrupted;
  job.if_lost = cluster::kExitLostPlace, job.if_left = cluster::kExitLeft;
  job.grace = config.trainer.notice_grace ? config.trainer.notice_grace->seconds
                                          : run::stop_limit(config.trainer).count() / 1000;
  RETURN_IF_ERROR(fs.make_dirs(call.out));
  for (const cluster::Manifest& manifest : cluster::kubernetes_manifests(job)) {
    const std::string path = io::join_path(call.out, manifest.file);
    RETURN_IF_ERROR(manifest.is_secret ? cluster::write_private_file(path, manifest.text)
                                       : fs.write_file(path, manifest.text));
  }
  const std::string stopped =
      job.slices.empty()
          ? fmt::format("job/{}-workers", job.name)
          : fmt::format("job -l app.kubernetes.io/instance={},app.kubernetes.io/component=worker", job.name);
  const std::string space = job.name_space.empty() ? "" : " -n " + job.name_space;
  return fmt::format(
      "{0}: manifests of {1} workers\n"
      "start:   kubectl apply -f {0}\n"
      "watch:   kubectl logs -f{2} job/{3}-coordinator\n"
      "stop:    kubectl delete{2} {4}    # the workers save and end; so does the coordinator\n"
      "remove:  kubectl delete -f {0}\n",
      call.out, job.workers, space, job.name, stopped);
}

}  // namespace

int launch_kubernetes_command(Args args) {
  KubernetesCall call;
  cluster::KubernetesJob& job = call.job;
  args.summary(
      "Writes the manifests of a run for Kubernetes: a Job of workers, one of the coordinator with a "
      "Service, a "
      "ConfigMap and a Secret. kubectl starts them. All pods share one volume, with the data and the run's "
      "folder, or nothing but an object store, where both are.");
  args.option("--image", &job.image, "IMAGE", "whose entry point is ostro (Dockerfile)", Args::kRequired);
  args.option("--workers", &job.workers, "N", "pods that train", Args::kRequired);
  args.option("--min_workers", &job.min_workers, "N", "go on with as few when others are lost");
  args.option(
      "--claim", &job.claim, "NAME",
      "the PersistentVolumeClaim that all pods mount, with access mode ReadWriteMany; not needed where "
      "trainer.log_dir and data.cache_dir are in an object store");
  args.option(
      "--mount", &job.mount, "DIR",
      "where they see it; trainer.log_dir and data.cache_dir are below it. Relative paths begin in the "
      "current folder where that is below it, too, and otherwise in DIR");
  args.option(
      "--credentials", &job.credentials, "SECRET",
      "a Secret that is there, whose keys all pods have as variables: AWS_ACCESS_KEY_ID and others, for "
      "an object store");
  args.option(
      "--slices", &call.slices, "NAME:N,...",
      "N workers in the slice NAME, on the nodes that have this value of --slice_label; a Job for each");
  args.option("--slice_label", &job.slice_label, "KEY",
              "the label of nodes that names slices, for instance topology.kubernetes.io/zone");
  args.option("--out", &call.out, "DIR", "where the manifests are written", Args::kRequired);
  args.option("--name", &job.name, "NAME",
              "begins the names of all objects; by default ostro- and the run's id");
  args.option("--namespace", &job.name_space, "NAME", "by default that of kubectl's context");
  args.option("--cpus", &job.cpus, "N", "of each worker; also its threads");
  args.option("--memory", &job.memory, "SIZE", "of each worker, for instance 16Gi");
  args.option("--gpus", &job.gpus, "N", "of each worker, with --device cuda");
  args.option("--user", &job.user, "UID",
              "the user and group of the processes, who must own the volume's folders");
  args.option("--failures", &job.failures, "N", "after so many failures the place of a worker is given up");
  args.flag(
      "--ipv6", &job.ipv6,
      "the coordinator listens at addresses of IPv6, and of IPv4 where pods have both: for a cluster whose "
      "pods have IPv6 first, or alone");
  args.device();
  args.config();
  if (auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const auto told = write_manifests(std::move(call), *config, args.context().fs);
  if (!told.ok()) return report_error(told.error());
  return exit_after(write_stdout(*told));
}

}  // namespace ostro::cli
