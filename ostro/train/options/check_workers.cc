// A mesh against the model and the leaves of a run, before any worker starts.
#include <fmt/format.h>

#include <algorithm>

#include "ostro/spmd/layout.h"
#include "ostro/train/options/config.h"
#include "ostro/train/options/split_beside.h"

namespace ostro::train {
namespace {

int64_t count_of(const config::IntMap& counts, const std::string& axis, int64_t without) {
  for (const auto& [name, count] : counts)
    if (name == axis) return count;
  return without;
}

Status check_split(const std::string& axis, const std::string& mesh_axis, int64_t workers, int64_t leaves,
                   int64_t size) {
  if (workers == 1 || spmd::subtree(leaves, workers) > 0) return Status();
  // What no op sums over its parts can be cut anywhere.
  const bool summed = std::none_of(kSplitBeside.begin(), kSplitBeside.end(),
                                   [&](const auto& entry) { return entry.first == axis; });
  if (!summed && (leaves > 1 ? leaves : size) >= workers) return Status();
  std::string fix = fmt::format("set numerics.leaves.{} to {}", axis, workers);
  if (size > 0 && size < workers)
    fix = fmt::format("the model has only {} of them: let {} be at most {} workers", size, mesh_axis, size);
  return config::option_error(
      fmt::format("numerics.leaves.{}", axis),
      fmt::format("{} is cut into {} {}, which the {} workers of the mesh axis {} cannot share; {}", axis,
                  leaves, leaves == 1 ? "leaf" : "leaves", workers, mesh_axis, fix));
}

}  // namespace

Status check_workers(const TrainConfig& config, int64_t workers) {
  ASSIGN_OR_RETURN(const ir::Sharding sharding, sharding_for(config.trainer.sharding, workers));
  const config::IntMap axes = config.model_options().leaf_axes();
  for (const auto& [axis, mesh_axis] : sharding.compute) {
    const int64_t size = count_of(axes, axis, -1);
    if (size < 0) continue;  // nothing is summed over it
    RETURN_IF_ERROR(check_split(axis, mesh_axis, sharding.mesh.size_of(mesh_axis),
                                count_of(config.numerics.leaves, axis, 1), size));
  }
  return Status();
}

std::vector<std::string> idle_mesh_axes(const TrainConfig& config, int64_t workers) {
  std::vector<std::string> out;
  const auto sharding = sharding_for(config.trainer.sharding, workers);
  if (!sharding.ok()) return out;
  for (const auto& axis : sharding->mesh.axes) {
    const auto uses = [&](const auto& entry) { return entry.second == axis.name; };
    if (axis.size == 1 || std::find(kLeafAxes.begin(), kLeafAxes.end(), axis.name) != kLeafAxes.end() ||
        std::any_of(sharding->compute.begin(), sharding->compute.end(), uses))
      continue;
    out.push_back(fmt::format(
        "trainer.mesh.axes.{}: {} workers do the same work along it, for nothing is split over it; name an "
        "axis in {}",
        axis.name, axis.size,
        axis.name == "model" ? "trainer.tensor_parallel_axes" : "trainer.axis_resources"));
  }
  return out;
}

}  // namespace ostro::train
