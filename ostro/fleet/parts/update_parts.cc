#include "ostro/fleet/parts/update_parts.h"

#include <algorithm>

#include "ostro/ir/text/sub_program.h"
#include "ostro/train/programs/state_arrays.h"

namespace ostro::fleet {
namespace {

using ir::ValueId;
using spmd::Role;

template <template <typename> class Params, template <typename> class Results>
Part<Params, Results> cut_part(const ir::Program& update, const std::string& name, const Params<ValueId>& in,
                               const Results<ValueId>& out) {
  return {ir::sub_program(update, name, train::as_list(in), train::as_list(out)), train::places_of(in),
          train::places_of(out)};
}

template <template <typename> class Params, template <typename> class Results>
Result<spmd::Partition> partition_part(const Part<Params, Results>& part, spmd::PartitionOptions options) {
  options.values = Role::kParameter;
  options.params = roles_of(part.params, Role::kParameter);
  options.results = roles_of(part.results, Role::kParameter);
  return spmd::partition(part.program, options);
}

// Whether workers send each other something in it.
bool exchanges(const ir::Block& block) {
  return std::any_of(block.ops.begin(), block.ops.end(), [](const ir::Op& op) {
    return (ir::is_collective(op.kind) && op.kind != ir::OpKind::shard_slice) ||
           std::any_of(op.regions.begin(), op.regions.end(), exchanges);
  });
}

}  // namespace

UpdateParts update_parts(const train::CanonicalPrograms& programs) {
  const ir::Program& u = programs.update;
  const train::Signatures at = train::signatures_of(programs);
  const auto in = train::read_fields(at.update_params, u.body.params);
  const auto out = train::read_fields(at.update_results, u.body.results);
  ReportResults<ValueId> report{out.report, {}};
  for (const size_t k : train::expert_loads(at.model)) report.expert_loads.push_back(out.params[k]);
  return {cut_part(u, "measure", MeasureParams<ValueId>{in.gradients, in.loss_sum, in.weight}, out.measures),
          cut_part(u, "apply",
                   ApplyParams<ValueId>{in.params, in.optimizer, in.gradients, in.weight, in.scalars,
                                        out.measures},
                   ApplyResults<ValueId>{out.params, out.optimizer}),
          cut_part(u, "prints", ReportParams<ValueId>{out.params}, report)};
}

Result<UpdatePartitions> partition_update(const UpdateParts& parts, spmd::PartitionOptions options) {
  UpdatePartitions out;
  ASSIGN_OR_RETURN(out.measure, partition_part(parts.measure, options));
  ASSIGN_OR_RETURN(out.apply, partition_part(parts.apply, options));
  ASSIGN_OR_RETURN(out.report, partition_part(parts.report, options));
  out.measures = parts.measure.results;
  out.apply_params = parts.apply.params, out.applied = parts.apply.results;
  out.reported = parts.report.results;
  for (const auto& program : out.apply.programs) out.joint |= program != nullptr && exchanges(program->body);
  return out;
}

}  // namespace ostro::fleet
