// ShardingOptions: the options that spread a run over workers. They and the number of workers give the mesh.
// None of them changes a bit of the result. Values and pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/config/options.h"
#include "ostro/ir/program/mesh.h"

namespace ostro::train {

// The time at which workers exchange the gradients of leaves: once a step, or layer by layer
// (docs/spec/spmd.md, "Two schedules").
enum class ExchangeSchedule { kStep, kLayer };
std::vector<std::string> option_names(ExchangeSchedule);

// How the leaves of a step are shared out: evenly, or by the measured speed of workers (fleet/shares).
enum class LeafSharing { kEven, kMeasured };
std::vector<std::string> option_names(LeafSharing);

// Which workers are in one slice: those whose launcher gave them one name of it, or also those that measure
// that their links are fast (fleet/slices).
enum class SliceNames : uint8_t { kNamed, kAuto };
std::vector<std::string> option_names(SliceNames);

struct MeshOptions {
  // Sizes, in the order of the mesh. One may be -1: as many as there are workers for.
  config::IntMap axes = {{"replica", 1}, {"data", -1}, {"model", 1}};
  int64_t state_replicas = 1;  // copies of each worker's cells in another worker's memory: 0 or 1
  ExchangeSchedule exchange = ExchangeSchedule::kStep;
  bool slice_overlap = true;  // send between slices while leaves are computed
  SliceNames slices = SliceNames::kNamed;
  int64_t slice_connections = 1;  // of each pair of workers in different slices
  void visit_options(config::OptionTable& table);
  bool operator==(const MeshOptions&) const = default;
};

// The keys of the `trainer:` section that spread a run over a mesh.
struct ShardingOptions {
  MeshOptions mesh;
  std::vector<std::string> tensor_parallel_axes;   // over the mesh axis "model"
  std::optional<std::string> fsdp_axis = "embed";  // of parameters and moments, over the mesh axis "data"
  std::map<std::string, std::string> axis_resources, parameter_axis_resources;  // array axis -> mesh axis
  LeafSharing shares = LeafSharing::kEven;

  void visit_options(config::OptionTable& table);
  Status validate() const;
};

// The mesh axes whose workers run different leaves (microbatches).
inline const std::vector<std::string> kLeafAxes = {"replica", "data"};
inline constexpr const char* kLeafPeers = "replica*data";  // for Mesh::peers

// The number of workers must be a multiple of this number.
int64_t mesh_multiple(const ShardingOptions& options);
// The size of the mesh axis replica, where no axis before it is larger than 1: its coordinates are then
// ranges of ranks. -1: as large as the number of workers allows. 0: there is no such axis.
int64_t outer_replicas(const ShardingOptions& options);

// Returns the mesh of `workers` workers, with every size known, and which array axes are split over which of
// its axes. Error: the sizes do not multiply to the number of workers (with the key and a value that works).
Result<ir::Sharding> sharding_for(const ShardingOptions& options, int64_t workers);

}  // namespace ostro::train
