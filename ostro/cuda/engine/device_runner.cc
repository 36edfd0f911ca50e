#include "ostro/cuda/engine/device_runner.h"

#include <fmt/format.h>

#include "ostro/base/watch/pulse.h"
#include "ostro/cuda/engine/routine_table.h"
#include "ostro/cuda/routines/routines.h"
#include "ostro/cuda/text/write_kernel.h"

namespace ostro::cuda {

using compile::Step;
using compile::StepKind;
using compile::View;

namespace {

// Ops that look at other workers or at numbers of the device, and keep nothing between runs.
bool reads_outside(ir::OpKind op) {
  return ir::is_collective(op) || op == ir::OpKind::paged_write || op == ir::OpKind::paged_attention;
}

}  // namespace

DeviceRunner::DeviceRunner(const compile::Plan& plan, const DeviceContext& context,
                           std::vector<gpu::Address> constants, std::string place)
    : PlanWalk(plan, constants), context_(context), place_(std::move(place)), prepared_(plan.steps.size()) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    prepared_[i].place =
        fmt::format("{} {}{}: {}", context.program, place_, i, compile::step_name(plan.steps[i]));
    prepared_[i].epilogues.resize(plan.steps[i].epilogues.size());
  }
}

Result<std::unique_ptr<DeviceRunner>> DeviceRunner::make(const compile::Plan& plan,
                                                         const DeviceContext& context, std::string place,
                                                         std::vector<std::shared_ptr<runtime::Block>>& kept) {
  gpu::Device& device = context.kernels->device();
  std::vector<gpu::Address> constants;
  for (const std::vector<std::byte>& bytes : plan.constants) {
    ASSIGN_OR_RETURN(std::shared_ptr<runtime::Block> block,
                     device.memory().allocate(std::max<int64_t>(1, static_cast<int64_t>(bytes.size()))));
    RETURN_IF_ERROR(device.memory().write(*block, 0, bytes));
    constants.push_back(device.address(*block));
    kept.push_back(std::move(block));
  }
  auto runner = std::make_unique<DeviceRunner>(plan, context, std::move(constants), place);
  for (size_t i = 0; i < plan.steps.size(); ++i)
    for (size_t r = 0; r < plan.steps[i].regions.size(); ++r) {
      ASSIGN_OR_RETURN(auto region,
                       make(plan.steps[i].regions[r], context, fmt::format("{}{}.{}.", place, i, r), kept));
      runner->prepared_[i].regions.push_back(std::move(region));
    }
  return runner;
}

void DeviceRunner::label_steps() {
  for (size_t i = 0; i < prepared_.size(); ++i) {
    if (prepared_[i].label != nullptr) return;
    prepared_[i].label =
        compile::step_label(plan().steps[i], context_.program, fmt::format("{}{}", place_, i));
    for (const auto& region : prepared_[i].regions) region->label_steps();
  }
}

void DeviceRunner::release() {
  for (Prepared& p : prepared_) {
    p.state = {};
    for (StepState& state : p.epilogues) state = {};
    for (const auto& region : p.regions) region->release();
  }
}

std::vector<DeviceArray> DeviceRunner::arrays(const std::vector<View>& views) const {
  std::vector<DeviceArray> out;
  for (const View& v : views) out.push_back({&v, data(v)});
  return out;
}

Result<bool> DeviceRunner::is_true(gpu::Address at) {
  if (context_.planned) return side_;
  std::byte value;
  RETURN_IF_ERROR(context_.kernels->device().read(at, std::span(&value, 1)));
  return value != std::byte{0};
}

Status DeviceRunner::run_step(size_t index, const runtime::RunContext& run_context) {
  pulse_touch();  // a leaf may take minutes; it does not hang
  const SpanLabelPtr& label = prepared_[index].label;
  if (label == nullptr || !profiling()) return begin_step(index, run_context);
  RETURN_IF_ERROR(context_.kernels->device().synchronise());  // what came before is not part of the span
  const Span span(&label);
  RETURN_IF_ERROR(begin_step(index, run_context));
  return context_.kernels->device().synchronise();
}

Status DeviceRunner::begin_step(size_t index, const runtime::RunContext& run_context) {
  const Step& step = plan().steps[index];
  Prepared& prepared = prepared_[index];
  if (step.kind == StepKind::kKernel) return run_fused(step, prepared.place);
  if (context_.planned && step.kind == StepKind::kBranch) return walk_branch(index, run_context);
  if (!step.regions.empty()) return run_nested(index, run_context);
  RETURN_IF_ERROR(run_op(step, prepared.state, prepared.place, run_context));
  for (size_t i = 0; i < step.epilogues.size(); ++i)
    RETURN_IF_ERROR(run_op(step.epilogues[i], prepared.epilogues[i], prepared.place, run_context));
  return Status();
}

Status DeviceRunner::walk_branch(size_t index, const runtime::RunContext& run_context) {
  for (const bool side : {true, false}) {
    side_ = side;
    RETURN_IF_ERROR(run_nested(index, run_context));
  }
  return Status();
}

Status DeviceRunner::run_op(const Step& step, StepState& state, const std::string& place,
                            const runtime::RunContext& run_context) {
  if (context_.planned && step.kind == StepKind::kOp && reads_outside(step.op)) return Status();
  const std::vector<DeviceArray> in = arrays(step.in), out = arrays(step.out);
  const StepCall call{step,          in,
                      out,           context_.module->leaves,
                      run_context,   *context_.kernels,
                      state,         *context_.host,
                      this->go_on(), place};
  if (step.kind == StepKind::kCopy) return copy_view(call, in[0], out[0]);
  return step_routine(step.op)(call);
}

Status DeviceRunner::run_fused(const Step& step, const std::string& place) {
  const compile::Nest& nest = context_.module->nests[static_cast<size_t>(step.kernel)];
  const NestLaunch launch = launch_of(nest, step.extent, context_.fast_nests);
  if (launch.blocks == 0) return Status();
  uint64_t argument[compile::kMaxKernelPointers + 1];
  size_t n = 0;
  for (const View& v : step.in) argument[n++] = data(v).at;
  for (const View& v : step.out) argument[n++] = data(v).at;
  argument[n++] = static_cast<uint64_t>(launch.extent);
  const gpu::LaunchShape shape{.x = launch.blocks, .threads = launch.threads};
  return context_.kernels->device().launch((*context_.fused)[static_cast<size_t>(step.kernel)], shape,
                                           std::as_bytes(std::span(argument, n)), place);
}

}  // namespace ostro::cuda
