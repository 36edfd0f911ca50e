#include "ostro/cuda/engine/cuda_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "ostro/base/profile.h"
#include "ostro/compile/passes/pass.h"
#include "ostro/compile/plan/executable.h"
#include "ostro/compile/plan/explain_plan.h"
#include "ostro/compile/plan/plan.h"
#include "ostro/cuda/engine/device_runner.h"
#include "ostro/cuda/engine/planned_blocks.h"
#include "ostro/cuda/engine/routine_table.h"
#include "ostro/cuda/text/device_text.h"
#include "ostro/cuda/text/write_kernel.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/runtime/check_inputs.h"

namespace ostro::cuda {
namespace {

using runtime::Buffer;

Result<runtime::ExecutableInfo> device_info(const compile::Module& module, const std::string& program,
                                            const Kernels& kernels) {
  runtime::ExecutableInfo info = compile::info_of(module);
  const runtime::Memory& memory = kernels.device().memory();
  for (const compile::PlanBuffer& b : module.plan.buffers)
    if (b.kind == compile::BufferKind::kResult && b.reuses_param < 0)
      info.fresh_bytes += memory.taken(module.plan.results[static_cast<size_t>(b.index)].bytes());
  ASSIGN_OR_RETURN(info.kept_bytes, planned_blocks(module, program, kernels));
  return info;
}

class DeviceExecutable final : public runtime::Executable {
 public:
  static Result<std::unique_ptr<runtime::Executable>> make(compile::Module module, const ir::Program& program,
                                                           std::shared_ptr<Kernels> kernels) {
    auto made = std::make_unique<DeviceExecutable>(std::move(module), program, std::move(kernels));
    RETURN_IF_ERROR(made->load());
    return std::unique_ptr<runtime::Executable>(std::move(made));
  }
  DeviceExecutable(compile::Module module, const ir::Program& program, std::shared_ptr<Kernels> kernels)
      : module_(std::move(module)), param_names_(program.param_names), kernels_(std::move(kernels)) {
    context_ = {.program = program.name,
                .module = &module_,
                .kernels = kernels_.get(),
                .fused = &fused_,
                .fast_nests = kernels_->fast(Fast::kReductions),
                .host = &exchanged_};
  }

  Result<std::vector<Buffer>> run(std::vector<Buffer> inputs, const runtime::RunContext& context) override {
    const compile::Plan& plan = module_.plan;
    gpu::Device& device = kernels_->device();
    RETURN_IF_ERROR(runtime::check_inputs(context_.program, param_names_, plan.params, inputs));
    ASSIGN_OR_RETURN(inputs, runtime::all_to(std::move(inputs), device.memory()));
    if (arena_ == nullptr) {
      ASSIGN_OR_RETURN(arena_, device.memory().allocate(std::max<int64_t>(1, plan.arena_bytes)));
    }
    const std::vector<int64_t> taken = compile::taken_params(plan, inputs);
    std::vector<Buffer> outputs(plan.results.size());
    for (size_t i = 0; i < plan.results.size(); ++i) {
      if (taken[i] >= 0) {
        outputs[i] = inputs[static_cast<size_t>(taken[i])];
      } else {
        ASSIGN_OR_RETURN(outputs[i], Buffer::allocate(plan.results[i], device.memory()));
      }
    }
    std::vector<gpu::Address> params, results;
    for (const Buffer& b : inputs) params.push_back(device.address(b.block()) + b.offset());
    for (const Buffer& b : outputs) results.push_back(device.address(b.block()) + b.offset());
    if (profiling()) runner_->label_steps();
    try {
      RETURN_IF_ERROR(runner_->run(params, results, device.address(*arena_), context));
    } catch (const ir::AttrError& e) {
      return invalid_argument(fmt::format("program {}: {}", context_.program, e.message));
    }
    return outputs;
  }

  // Of a program that compiled.
  runtime::ExecutableInfo info() const override {
    std::call_once(planned_, [this] {
      auto info = device_info(module_, context_.program, *kernels_);
      info_ = info.ok() ? std::move(info).value() : compile::info_of(module_);
    });
    return info_;
  }
  void release() override {
    arena_ = {};
    exchanged_ = {};
    runner_->release();
  }

 private:
  Status load() {
    if (!module_.nests.empty()) {
      ASSIGN_OR_RETURN(code_,
                       kernels_->device().load(context_.program,
                                               device_text(write_nests(module_.nests, context_.fast_nests))));
      for (size_t i = 0; i < module_.nests.size(); ++i) {
        ASSIGN_OR_RETURN(const gpu::Kernel kernel, code_->kernel(fmt::format("k{}", i)));
        fused_.push_back(kernel);
      }
    }
    ASSIGN_OR_RETURN(runner_, DeviceRunner::make(module_.plan, context_, "", constants_));
    return Status();
  }

  const compile::Module module_;
  const std::vector<std::string> param_names_;
  const std::shared_ptr<Kernels> kernels_;
  std::shared_ptr<const gpu::Code> code_;
  std::vector<gpu::Kernel> fused_;
  DeviceContext context_;
  std::vector<std::shared_ptr<runtime::Block>> constants_;
  std::unique_ptr<DeviceRunner> runner_;
  std::shared_ptr<runtime::Block> arena_;
  std::vector<std::byte> exchanged_;  // StepCall::host
  mutable std::once_flag planned_;
  mutable runtime::ExecutableInfo info_;  // once `planned_`
};

class DeviceEngine final : public runtime::Engine, private runtime::Inspector {
 public:
  DeviceEngine(gpu::Device& device, const DeviceEngineOptions& options)
      : info_{.name = fmt::format("{} ({})", device.memory().name(), device.limits().name)},
        options_(options),
        kernels_(std::make_shared<Kernels>(device, options.fast, options.width)) {}

  const runtime::EngineInfo& info() const override { return info_; }
  runtime::Memory& memory() override { return kernels_->device().memory(); }
  runtime::Inspector* inspector() override { return this; }

  Result<std::unique_ptr<runtime::Executable>> compile(const ir::Program& program,
                                                       const runtime::CompileOptions& options) override {
    ASSIGN_OR_RETURN(compile::Module module, lower(program, options, false));
    RETURN_IF_ERROR(check_supported(module.plan, program.name));
    return DeviceExecutable::make(std::move(module), program, kernels_);
  }
  Result<runtime::ExecutableInfo> estimate(const ir::Program& program,
                                           const runtime::CompileOptions& options) override {
    ASSIGN_OR_RETURN(const compile::Module module, lower(program, options, false));
    RETURN_IF_ERROR(check_supported(module.plan, program.name));
    return device_info(module, program.name, *kernels_);
  }
  Result<std::string> plan(const ir::Program& program, const runtime::CompileOptions& options) override {
    ASSIGN_OR_RETURN(const compile::Module module, lower(program, options, false));
    return fmt::format("{}:\n{}", program.name, compile::print_plan(module));
  }
  Result<std::string> explain(const ir::Program& program, const runtime::CompileOptions& options,
                              const runtime::Measured* measured) override {
    ASSIGN_OR_RETURN(const compile::Module module, lower(program, options, true));
    return compile::explain_plan(program.name, module, measured);
  }
  Result<runtime::MachineLimits> limits() override {
    return unsupported(fmt::format(
        "the limits of {} are not measured; scripts/gpu_check.sh measures kernels on it", info_.name));
  }

 private:
  Result<compile::Module> lower(const ir::Program& program, const runtime::CompileOptions& options,
                                bool reasons) const {
    RETURN_IF_ERROR(ir::verify(program));
    ASSIGN_OR_RETURN(const ir::Program optimised, compile::run_passes(program, options));
    compile::LowerOptions lower_options;
    lower_options.fuse = options_.fuse;
    lower_options.target = device_target();
    lower_options.target.tile_rows = options_.head_tile;
    lower_options.reasons = reasons;
    lower_options.donate = options.donate;
    return compile::lower(optimised, lower_options);
  }

  const runtime::EngineInfo info_;
  const DeviceEngineOptions options_;
  const std::shared_ptr<Kernels> kernels_;
};

}  // namespace

std::unique_ptr<runtime::Engine> make_device_engine(gpu::Device& device, const DeviceEngineOptions& options) {
  return std::make_unique<DeviceEngine>(device, options);
}

}  // namespace ostro::cuda
