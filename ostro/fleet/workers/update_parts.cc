#include "ostro/fleet/workers/update_parts.h"

#include <algorithm>

#include "ostro/ir/text/sub_program.h"
#include "ostro/train/step/step.h"

namespace ostro::fleet {
namespace {

using ir::ValueId;
using spmd::Role;

std::vector<ValueId> values(const std::vector<ValueId>& of, size_t first, size_t count) {
  const auto at = of.begin() + static_cast<std::ptrdiff_t>(first);
  return {at, at + static_cast<std::ptrdiff_t>(count)};
}

std::vector<ValueId> operator+(std::vector<ValueId> a, const std::vector<ValueId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The first `params` parameters and `results` results are split as parameters are, the others are whole.
Result<spmd::Partition> partition_part(const ir::Program& program, size_t params, size_t results,
                                       spmd::PartitionOptions options) {
  options.values = Role::kParameter;
  options.params.assign(program.body.params.size(), Role::kActivation);
  options.results.assign(program.body.results.size(), Role::kActivation);
  std::fill_n(options.params.begin(), params, Role::kParameter);
  std::fill_n(options.results.begin(), results, Role::kParameter);
  return spmd::partition(program, options);
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
  const train::UpdateLayout at = train::update_layout(programs);
  const size_t all = at.n + at.kept;
  const std::vector<ValueId>& in = u.body.params;
  const std::vector<ValueId>& out = u.body.results;
  const ValueId loss_sum = in[at.loss_sum()], weight = in[at.loss_sum() + 1];
  const ValueId loss = out[at.loss()], norm = out[at.loss() + 1], ok = out[at.loss() + 2];
  const std::vector<ValueId> norms = values(out, at.norm(0), at.norms);
  UpdateParts parts;
  parts.measure =
      ir::sub_program(u, "measure", values(in, at.gradients(), at.trained) + std::vector{loss_sum, weight},
                      std::vector{loss, norm, ok} + norms);
  parts.apply =
      ir::sub_program(u, "apply",
                      values(in, 0, all + at.trained) + std::vector{weight} +
                          values(in, at.first_scalar(), at.scalars) + std::vector{loss, norm, ok} + norms,
                      values(out, 0, all));
  std::vector<ValueId> loads;
  for (const size_t k : train::expert_loads(u)) loads.push_back(out[k]);
  parts.prints = ir::sub_program(u, "prints", values(out, 0, at.n), values(out, at.prints(), at.n) + loads);
  return parts;
}

Result<UpdatePartitions> partition_update(const UpdateParts& parts, const train::UpdateLayout& at,
                                          spmd::PartitionOptions options) {
  const size_t all = at.n + at.kept;
  UpdatePartitions out;
  ASSIGN_OR_RETURN(out.measure, partition_part(parts.measure, at.trained, 0, options));
  ASSIGN_OR_RETURN(out.apply, partition_part(parts.apply, all + at.trained, all, options));
  ASSIGN_OR_RETURN(out.prints, partition_part(parts.prints, at.n, 0, options));
  for (const auto& program : out.apply.programs) out.joint |= program != nullptr && exchanges(program->body);
  return out;
}

}  // namespace ostro::fleet
