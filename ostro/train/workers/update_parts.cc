#include "ostro/train/workers/update_parts.h"

#include <algorithm>

#include "ostro/ir/text/sub_program.h"
#include "ostro/train/step/step.h"

namespace ostro::train {
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

}  // namespace

UpdateParts update_parts(const CanonicalPrograms& programs) {
  const ir::Program& u = programs.update;
  const size_t n = parameter_count(programs);
  const std::vector<ValueId>& in = u.body.params;
  const std::vector<ValueId>& out = u.body.results;
  const ValueId loss_sum = in[4 * n], weight = in[4 * n + 1];
  const ValueId loss = out[3 * n], norm = out[3 * n + 1], ok = out[3 * n + 2];
  UpdateParts parts;
  parts.measure =
      ir::sub_program(u, "measure", values(in, 3 * n, n) + std::vector{loss_sum, weight}, {loss, norm, ok});
  parts.apply = ir::sub_program(
      u, "apply",
      values(in, 0, 4 * n) + std::vector{weight} + values(in, 4 * n + 2, 3) + std::vector{norm, ok},
      values(out, 0, 3 * n));
  parts.prints = ir::sub_program(u, "prints", values(out, 0, n), values(out, 3 * n + 3, n));
  return parts;
}

Result<UpdatePartitions> partition_update(const UpdateParts& parts, size_t n,
                                          spmd::PartitionOptions options) {
  UpdatePartitions out;
  ASSIGN_OR_RETURN(out.measure, partition_part(parts.measure, n, 0, options));
  ASSIGN_OR_RETURN(out.apply, partition_part(parts.apply, 4 * n, 3 * n, options));
  ASSIGN_OR_RETURN(out.prints, partition_part(parts.prints, n, 0, options));
  return out;
}

}  // namespace ostro::train
