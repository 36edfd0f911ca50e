#include "ostro/fleet/cells/init_cells.h"

#include <algorithm>

#include "ostro/ir/program/op_table.h"
#include "ostro/spmd/run_parts.h"
#include "ostro/train/options/mesh.h"
#include "ostro/train/options/split_beside.h"

namespace ostro::fleet {
namespace {

using runtime::Buffer;

// Whether some op sums over an axis, which leaves would cut.
bool sums(const ir::Block& block) {
  return std::any_of(block.ops.begin(), block.ops.end(), [&](const ir::Op& op) {
    std::vector<ir::Shape> in, out;
    for (const ir::ValueId v : op.operands) in.push_back(block.shape(v));
    for (const ir::ValueId v : op.results) out.push_back(block.shape(v));
    for (const ir::Shape& shape : in)
      for (const ir::Axis& axis : shape.axes)
        if (ir::axis_role(op, in, out, axis.name) == ir::AxisRole::kSum) return true;
    return std::any_of(op.regions.begin(), op.regions.end(), sums);
  });
}

// The program that makes what `rank` owns. Axes without cells are owned in leaves of the update program. The
// init program itself has no leaves: one that sums is not split.
Result<std::shared_ptr<const ir::Program>> program_of(const WorkerPlan& plan, int64_t rank) {
  if (sums(plan.programs.init.body)) return std::make_shared<const ir::Program>(plan.programs.init);
  spmd::PartitionOptions options;
  options.sharding = plan.options.sharding;
  options.cells = plan.options.cells;
  options.only = rank;
  options.leaf_axes = train::kLeafAxes;
  options.beside = train::kSplitBeside;
  options.values = spmd::Role::kParameter;
  options.params.assign(1, spmd::Role::kActivation);  // the key
  options.results.assign(plan.n, spmd::Role::kParameter);
  ir::Program init = plan.programs.init;
  init.leaves = plan.programs.update.leaves;
  ASSIGN_OR_RETURN(const spmd::Partition parts, spmd::partition(init, options));
  return parts.programs[static_cast<size_t>(rank)];
}

}  // namespace

Result<train::State> initial_cells(const WorkerPlan& plan, int64_t rank, int64_t seed,
                                   runtime::Collectives* group) {
  ASSIGN_OR_RETURN(const auto program, program_of(plan, rank));
  ASSIGN_OR_RETURN(const auto init, plan.engine->compile(*program));
  train::State state;
  ASSIGN_OR_RETURN(state.params, init->run({train::init_key(seed)}, {group}));
  for (size_t k = 0; k < plan.n; ++k) {
    Buffer& p = state.params[k];
    const ir::Shape owned = plan.owned_shape(k, rank);
    if (p.shape() == owned) continue;
    ASSIGN_OR_RETURN(const Buffer whole, p.to_host());
    p = spmd::shard(plan.mesh(), rank, plan.owned(k), whole);
  }
  for (size_t k = plan.n; k < plan.arrays.size(); ++k)
    state.optimizer.push_back(Buffer::zeros(plan.owned_shape(k, rank)));
  return state;
}

}  // namespace ostro::fleet
