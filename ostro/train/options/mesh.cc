#include "ostro/train/options/mesh.h"

#include <fmt/format.h>

#include <algorithm>

namespace ostro::train {
namespace {

using config::Effect;
using config::option_error;

std::string mesh_text(const config::IntMap& axes) {
  std::string text;
  for (const auto& [name, size] : axes) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, size);
  return "{" + text + "}";
}

bool has_axis(const config::IntMap& axes, const std::string& name) {
  return std::any_of(axes.begin(), axes.end(), [&](const auto& axis) { return axis.first == name; });
}

bool is_leaf_axis(const std::string& name) {
  return std::find(kLeafAxes.begin(), kLeafAxes.end(), name) != kLeafAxes.end();
}

}  // namespace

std::vector<std::string> option_names(ExchangeSchedule) { return {"step", "layer"}; }
std::vector<std::string> option_names(LeafSharing) { return {"even", "measured"}; }
std::vector<std::string> option_names(SliceNames) { return {"named", "auto"}; }

void MeshOptions::visit_options(config::OptionTable& t) {
  t.add(&axes, "axes", Effect::kPlan, "workers by mesh axis",
        "the grid of workers; one size may be -1, which is as many as there are workers for. Workers along "
        "replica and data run different microbatches; other axes split what tensor_parallel_axes and "
        "axis_resources map to them")
      .other("{data: -1}");
  t.add(
       &state_replicas, "state_replicas", Effect::kPlan, "0 or 1",
       "copies of the parameters and moments that a worker owns, in the memory of another worker, on another "
       "host if there is one. With 1 a lost worker costs no step; with 0 the run goes on from its last "
       "checkpoint")
      .other("0");
  t.add(&exchange, "exchange", Effect::kPlan, "",
        "when workers exchange gradients. step: each worker adds up those of its leaves, in whole, and sends "
        "them once a step. layer: every leaf's, layer by layer within the backward pass; then no worker ever "
        "holds whole parameters or gradients, but every leaf's travel")
      .other("layer");
  t.add(&slices, "slices", Effect::kPlan, "",
        "which workers of ostro launch are in one slice, a group with fast links among them. named: those to "
        "which their launcher gave one name of a slice. auto: workers without such a name measure how fast "
        "they reach each other before they train, and are put into slices by that")
      .other("auto")
      .since_default("named");
  t.add(&slice_overlap, "slice_overlap", Effect::kPlan, "",
        "with exchange: step and workers in several slices: send parameters between slices layer by layer "
        "while the first leaf is computed, and gradients while the backward pass of the last one goes on")
      .other("false")
      .since_default("true");
  t.add(&slice_connections, "slice_connections", Effect::kPlan, "1 to 16",
        "connections between two workers of different slices that long messages are shared out to. More than "
        "one help where a link is long or loses packets, so that one connection does not fill it")
      .other("4")
      .since_default("1");
}

void ShardingOptions::visit_options(config::OptionTable& t) {
  t.section(&mesh, "mesh", "the grid of workers of a run on several processes (ostro launch)");
  t.add(&tensor_parallel_axes, "tensor_parallel_axes", Effect::kPlan, "axes",
        "array axes that are split over the mesh axis model: kv_heads, mlp, vocab; each needs as many "
        "numerics.leaves")
      .other("[mlp]");
  t.add(&fsdp_axis, "fsdp_axis", Effect::kPlan, "axis",
        "axis along which parameters and moments are owned in cells by the workers of the mesh axis data; "
        "null: every worker holds and updates all of them")
      .other("null");
  t.add(&axis_resources, "axis_resources", Effect::kPlan, "mesh axes by array axis",
        "further array axes that are split over mesh axes, for instance {pos: context}")
      .other("{pos: context}")
      .beside({{"trainer.mesh.axes", "{data: -1, context: 1}"}});
  t.add(&parameter_axis_resources, "parameter_axis_resources", Effect::kPlan, "mesh axes by array axis",
        "the same for parameters and moments alone")
      .other("{mlp: model}");
  t.add(&shares, "shares", Effect::kPlan, "",
        "how many microbatches of a step each worker runs. even: all as many. measured: a slow worker fewer, "
        "by the time that a microbatch takes on each; shares change in mid-run when a step would be shorter "
        "by a tenth. Needs mesh.exchange: step, and memory for more partial sums")
      .since_default("even")
      .other("measured");
}

Status ShardingOptions::validate() const {
  config::Mistakes mistakes;
  if (mesh.state_replicas < 0 || mesh.state_replicas > 1)
    mistakes.add(option_error("trainer.mesh.state_replicas",
                              fmt::format("{} copies; use 1, or 0 for none", mesh.state_replicas)));
  if (mesh.slice_connections < 1 || mesh.slice_connections > 16)
    mistakes.add(option_error("trainer.mesh.slice_connections",
                              fmt::format("{} connections; use 1 to 16", mesh.slice_connections)));
  if (shares == LeafSharing::kMeasured && mesh.exchange == ExchangeSchedule::kLayer)
    mistakes.add(option_error("trainer.shares",
                              "measured gives workers unequal numbers of leaves, and with "
                              "trainer.mesh.exchange: layer all run as many rounds of them together; use "
                              "exchange: step, or shares: even"));
  int open = 0;
  for (const auto& [name, size] : mesh.axes) {
    if (size == -1) ++open;
    if (size < 1 && size != -1)
      mistakes.add(
          option_error("trainer.mesh.axes." + name, fmt::format("{} is not a size; use 1 or more, or -1 for "
                                                                "one axis",
                                                                size)));
  }
  if (open > 1)
    mistakes.add(
        option_error("trainer.mesh.axes", fmt::format("{}: only one axis may be -1", mesh_text(mesh.axes))));
  const auto check = [&](const std::string& key, const std::string& axis, const std::string& mesh_axis,
                         bool parameters) -> Status {
    if (!has_axis(mesh.axes, mesh_axis))
      return option_error(key, fmt::format("axis \"{}\" is mapped to the mesh axis \"{}\", which "
                                           "trainer.mesh.axes {} does not have",
                                           axis, mesh_axis, mesh_text(mesh.axes)));
    if (!parameters && is_leaf_axis(mesh_axis))
      return option_error(key, fmt::format("axis \"{}\" cannot be split over the mesh axis \"{}\", whose "
                                           "workers run different microbatches; use another mesh axis, for "
                                           "instance model",
                                           axis, mesh_axis));
    return Status();
  };
  for (const std::string& axis : tensor_parallel_axes)
    mistakes.add(check("trainer.tensor_parallel_axes", axis, "model", false));
  for (const auto& [axis, mesh_axis] : axis_resources)
    mistakes.add(check("trainer.axis_resources", axis, mesh_axis, false));
  for (const auto& [axis, mesh_axis] : parameter_axis_resources)
    mistakes.add(check("trainer.parameter_axis_resources", axis, mesh_axis, true));
  return mistakes.status();
}

int64_t mesh_multiple(const ShardingOptions& options) {
  int64_t known = 1;
  for (const auto& [name, size] : options.mesh.axes)
    if (size > 0) known *= size;
  return known;
}

int64_t outer_replicas(const ShardingOptions& options) {
  for (const auto& [name, size] : options.mesh.axes)
    if (size != 1) return name == kLeafAxes.front() ? size : 0;
  return 0;
}

Result<ir::Sharding> sharding_for(const ShardingOptions& options, int64_t workers) {
  ir::Sharding out;
  const int64_t known = mesh_multiple(options);
  bool open = false;
  for (const auto& [name, size] : options.mesh.axes) {
    open |= size < 0;
    out.mesh.axes.push_back({name, size < 0 ? std::max<int64_t>(1, workers / known) : size});
  }
  if (out.mesh.size() != workers) {
    const std::string fix =
        open ? fmt::format("use a multiple of {} workers, for instance {}, or sizes that divide {}", known,
                           std::max<int64_t>(1, workers / known) * known, workers)
             : fmt::format("use {} workers, or set one size to -1", known);
    return option_error(
        "trainer.mesh.axes",
        fmt::format("{} is a mesh of {} workers, and there are {}; {}", mesh_text(options.mesh.axes),
                    open ? fmt::format("{} x n", known) : std::to_string(known), workers, fix));
  }
  for (const std::string& axis : options.tensor_parallel_axes) out.compute.emplace_back(axis, "model");
  for (const auto& entry : options.axis_resources) out.compute.emplace_back(entry);
  // What computing splits is split in the parameters, too; positions are no axis of a parameter.
  out.parameter = out.compute;
  for (const auto& entry : options.parameter_axis_resources) out.parameter.emplace_back(entry);
  if (options.fsdp_axis) out.parameter.emplace_back(*options.fsdp_axis, "data");
  return out;
}

}  // namespace ostro::train
