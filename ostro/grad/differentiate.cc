#include "ostro/grad/differentiate.h"

#include <fmt/format.h>

#include "ostro/grad/joint.h"
#include "ostro/ir/program/builder.h"

namespace ostro {
namespace {

using grad_internal::JointRequest;

Status check(const ir::Block& f, const std::vector<int64_t>& wrt) {
  for (int64_t i : wrt) {
    if (i < 0 || static_cast<size_t>(i) >= f.params.size())
      return invalid_argument(
          fmt::format("differentiation with respect to parameter {} of {}", i, f.params.size()));
    const ir::Shape& s = f.shape(f.params[static_cast<size_t>(i)]);
    if (!ir::is_floating(s.dtype))
      return invalid_argument(
          fmt::format("parameter {} is {}: only floating values have a derivative", i, s.str()));
  }
  return Status();
}

}  // namespace

Result<ir::Block> value_and_grad_block(const ir::Block& f, const std::vector<int64_t>& wrt) {
  if (f.results.empty()) return invalid_argument("the function to differentiate has no result");
  RETURN_IF_ERROR(check(f, wrt));
  JointRequest request;
  request.unit_seed = true;
  request.param_active.assign(f.params.size(), 0);
  request.param_use.assign(f.params.size(), 0);
  for (int64_t i : wrt) request.param_active[static_cast<size_t>(i)] = 1;
  for (ir::ValueId v : f.results) request.result_active.push_back(ir::is_floating(f.shape(v).dtype));
  ASSIGN_OR_RETURN(grad_internal::Joint joint, grad_internal::build_joint(f, request));
  ir::Block& block = joint.block;
  block.results = joint.results;
  ir::Builder b(block);
  for (int64_t i : wrt) {
    const ir::ValueId ct = joint.param_cts[static_cast<size_t>(i)];
    block.results.push_back(ct >= 0 ? ct : b.splat(0, f.shape(f.params[static_cast<size_t>(i)])));
  }
  return std::move(block);
}

}  // namespace ostro
