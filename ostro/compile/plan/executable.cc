#include "ostro/compile/plan/executable.h"

namespace ostro::compile {
namespace {

// Of the operands that are packed for the first tile and kept for the others. They are as large as the
// values, but for the padding of panels.
int64_t kept_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const Step& step : plan.steps) {
    if (step.keeps_b) bytes += step.in[1].shape.bytes();
    for (const Plan& region : step.regions) bytes += kept_bytes(region);
  }
  return bytes;
}

}  // namespace

runtime::ExecutableInfo info_of(const Module& module) {
  runtime::ExecutableInfo info;
  info.arena_bytes = module.plan.arena_bytes + kept_bytes(module.plan);
  for (const ir::Shape& s : module.plan.params) info.input_bytes += s.bytes();
  for (const ir::Shape& s : module.plan.results) info.output_bytes += s.bytes();
  info.flops = module.plan.flops();
  info.kernels = static_cast<int64_t>(module.nests.size());
  return info;
}

std::vector<int64_t> taken_params(const Plan& plan, const std::vector<runtime::Buffer>& inputs) {
  std::vector<int64_t> taken(plan.results.size(), -1);
  for (const PlanBuffer& b : plan.buffers)
    if (b.kind == BufferKind::kResult && b.reuses_param >= 0 &&
        inputs[static_cast<size_t>(b.reuses_param)].unique())
      taken[static_cast<size_t>(b.index)] = b.reuses_param;
  return taken;
}

}  // namespace ostro::compile
