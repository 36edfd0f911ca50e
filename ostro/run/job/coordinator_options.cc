#include "ostro/run/job/coordinator_options.h"

#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/cluster/watch/cluster_file.h"
#include "ostro/io/files/path.h"
#include "ostro/objects/s3/routing_file_system.h"
#include "ostro/run/job/job_hello.h"
#include "ostro/run/job/time_limits.h"
#include "ostro/run/loop/resume.h"
#include "ostro/train/options/mesh.h"

namespace ostro::run {
namespace {

// "replica 1, data 4, model 1", or "" where so many workers form none.
std::string mesh_text(const train::TrainConfig& config, int64_t workers) {
  const auto sharding = train::sharding_for(config.trainer.sharding, workers);
  if (!sharding.ok()) return "";
  std::string text;
  for (const auto& axis : sharding->mesh.axes)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", axis.name, axis.size);
  return text;
}

}  // namespace

Result<cluster::CoordinatorOptions> coordinator_options(const train::TrainConfig& config, int64_t min_workers,
                                                        int64_t max_workers) {
  const std::string directory = train::run_directory(config);
  // Before anything in that folder changes.
  RETURN_IF_ERROR(check_fixed_options(objects::default_file_system(), config));
  for (const std::string& idle : train::idle_mesh_axes(config, max_workers)) log_warning(idle);
  cluster::CoordinatorOptions options;
  options.min_workers = min_workers;
  options.max_workers = max_workers;
  options.tls = config.trainer.tls.has_value();
  options.link_timeout = link_limit(config.trainer);
  options.multiple = train::mesh_multiple(config.trainer.sharding);
  options.replicas = train::outer_replicas(config.trainer.sharding);
  options.equal_slices = config.trainer.sharding.mesh.exchange == train::ExchangeSchedule::kLayer;
  options.mesh = [config](int64_t size) { return mesh_text(config, size); };
  RETURN_IF_ERROR(objects::default_file_system().make_dirs(directory));
  ASSIGN_OR_RETURN(const std::string place, place_of_run(directory));
  options.expected = job_hello(config, place);
  options.journal = io::join_path(directory, cluster::kJournalFile);
  options.state_file = io::join_path(directory, cluster::kClusterFile);
  return options;
}

}  // namespace ostro::run
