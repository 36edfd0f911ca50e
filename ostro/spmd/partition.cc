#include "ostro/spmd/partition.h"

#include <map>

#include <fmt/format.h>

#include "ostro/ir/rules/verify.h"
#include "ostro/ir/text/text.h"
#include "ostro/spmd/partition_block.h"

namespace ostro::spmd {
namespace {

Status check(const ir::Program& program, const PartitionOptions& o) {
  if (o.params.size() != program.body.params.size() || o.results.size() != program.body.results.size())
    return invalid_argument(fmt::format("partition of {}: {} and {} roles for {} parameters and {} results",
                                        program.name, o.params.size(), o.results.size(),
                                        program.body.params.size(), program.body.results.size()));
  for (const ir::Axis& a : o.sharding.mesh.axes)
    if (a.size < 1) return invalid_argument(fmt::format("mesh axis \"{}\" has size {}", a.name, a.size));
  for (const auto& [axis, mesh_axis] : o.sharding.compute)
    for (const std::string& leaf_axis : o.leaf_axes)
      if (mesh_axis == leaf_axis)
        return invalid_argument(fmt::format(
            "axis \"{}\" cannot be split over mesh axis \"{}\", which carries leaves", axis, mesh_axis));
  return Status();
}

// One worker's program: its parameters are the worker's parts, the body is rewritten by BlockPartitioner, and
// each result is moved to its planned layout, or exchanged where it is made.
Result<ir::Program> program_of(const ir::Program& program, const PartitionOptions& o,
                               const Placement& placement, const Partition& plan,
                               const ExchangePlan& exchange, int64_t rank) {
  ir::Program out{program.name, program.leaves, {}, program.param_names, program.result_names};
  BlockPartitioner partitioner(placement, o.values, rank, out.body);
  partitioner.exchange_in_scans(exchange);
  Locals args;
  for (size_t i = 0; i < plan.params.size(); ++i)
    args.push_back({out.body.add_param(local_shape(plan.mesh, rank, plan.params[i], plan.param_shapes[i])),
                    plan.param_shapes[i], plan.params[i]});
  ASSIGN_OR_RETURN(const Locals results, partitioner.run(program.body, args));
  for (size_t i = 0; i < results.size(); ++i) {
    const auto& gradient = exchange.results[i];
    const bool here = gradient && !gradient->in_scan;
    ir::ValueId v = partitioner.move(results[i], here ? gradient->sent : plan.results[i]).id;
    if (here) {
      ASSIGN_OR_RETURN(v, add_exchange(out.body, v, exchange, *gradient, plan.mesh, rank));
    }
    out.body.results.push_back(v);
  }
  RETURN_IF_ERROR(ir::verify(out));
  return out;
}

}  // namespace

// Plans the layouts of parameters and results once for all workers, then makes each worker's program.
// Programs with equal text become one object.
Result<Partition> partition(const ir::Program& program, const PartitionOptions& options) {
  RETURN_IF_ERROR(check(program, options));
  const Placement placement{options.sharding, options.cells, program.leaves, options.leaf_axes,
                            options.beside};
  ExchangePlan exchange;
  exchange.results.resize(options.results.size());
  Partition plan;
  plan.mesh = options.sharding.mesh;
  for (size_t i = 0; i < options.params.size(); ++i) {
    plan.param_shapes.push_back(program.body.shape(program.body.params[i]));
    plan.params.push_back(placement.layout(options.params[i], plan.param_shapes.back()));
  }
  for (size_t i = 0; i < options.results.size(); ++i) {
    plan.result_shapes.push_back(program.body.shape(program.body.results[i]));
    plan.results.push_back(placement.layout(options.results[i], plan.result_shapes.back()));
  }
  std::map<std::string, std::shared_ptr<const ir::Program>> shared;
  try {
    if (options.exchange) {
      ASSIGN_OR_RETURN(exchange, plan_exchange(program, placement, options.results, *options.exchange));
      for (size_t i = 0; i < exchange.results.size(); ++i) {
        if (!exchange.results[i]) continue;
        plan.result_shapes[i] = exchange.results[i]->result;
        plan.results[i] = exchange.results[i]->layout;
      }
    }
    plan.programs.resize(static_cast<size_t>(plan.mesh.size()));
    for (int64_t rank = 0; rank < plan.mesh.size(); ++rank) {
      if (options.only && *options.only != rank) continue;
      auto made = program_of(program, options, placement, plan, exchange, rank);
      if (!made.ok()) return made.error().with_context(fmt::format("partition of {}", program.name));
      auto& slot = shared[ir::print(*made)];
      if (slot == nullptr) slot = std::make_shared<const ir::Program>(std::move(*made));
      plan.programs[static_cast<size_t>(rank)] = slot;
    }
  } catch (const ir::AttrError& e) {
    return invalid_argument(fmt::format("partition of {}: {}", program.name, e.message));
  }
  return plan;
}

}  // namespace ostro::spmd
