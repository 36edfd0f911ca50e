#include "ostro/cpu/engine/engine.h"
#include "ostro/products/choose_isa.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "ostro/base/aligned.h"
#include "ostro/base/log.h"
#include "ostro/base/machine.h"
#include "ostro/compile/passes/pass.h"
#include "ostro/compile/plan/executable.h"
#include "ostro/compile/plan/explain_plan.h"
#include "ostro/compile/plan/plan.h"
#include "ostro/cpu/engine/engine_cc.h"
#include "ostro/cpu/plan/runner.h"
#include "ostro/cpu/routines/contraction.h"
#include "ostro/cpu/routines/flights.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/machine/affinity.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/products/calibrate.h"
#include "ostro/runtime/check_inputs.h"

namespace ostro::cpu {
namespace {

using runtime::Buffer;

class CpuExecutable final : public runtime::Executable {
 public:
  CpuExecutable(compile::Module module, const ir::Program& program, CompiledKernels kernels, machine::Isa isa,
                std::shared_ptr<machine::ThreadPool> pool, std::shared_ptr<machine::CallerCpu> caller_cpu)
      : module_(std::move(module)),
        name_(program.name),
        param_names_(program.param_names),
        kernels_(std::move(kernels)),
        pool_(std::move(pool)),
        caller_cpu_(std::move(caller_cpu)),
        context_{&module_.leaves, &kernels_.functions, pool_.get(), isa, &flights_},
        runner_(module_.plan, context_) {
    runner_.tell_watch();
  }

  ~CpuExecutable() override {
    std::vector<StepRow> rows;
    runner_.append_times(rows);
    if (!rows.empty()) fmt::print(stderr, "{}", print_times(name_, std::move(rows)));
  }

  Result<std::vector<Buffer>> run(std::vector<Buffer> inputs, const runtime::RunContext& context) override {
    const compile::Plan& plan = module_.plan;
    RETURN_IF_ERROR(runtime::check_inputs(name_, param_names_, plan.params, inputs));
    ASSIGN_OR_RETURN(inputs, runtime::all_to(std::move(inputs), runtime::host_memory()));
    if (arena_ == nullptr)
      arena_ = allocate_aligned(static_cast<size_t>(std::max<int64_t>(1, plan.arena_bytes)));
    std::vector<Buffer> outputs;
    std::vector<char*> params, results;
    const std::vector<int64_t> taken = compile::taken_params(plan, inputs);
    for (size_t i = 0; i < plan.results.size(); ++i)
      outputs.push_back(taken[i] >= 0 ? inputs[static_cast<size_t>(taken[i])]
                                      : Buffer::empty(plan.results[i]));
    for (Buffer& b : inputs) params.push_back(reinterpret_cast<char*>(b.mutable_bytes().data()));
    for (Buffer& b : outputs) results.push_back(reinterpret_cast<char*>(b.mutable_bytes().data()));
    if (context.watch != nullptr) context.watch->begin(outputs);
    if (profiling()) runner_.label_steps(name_);
    const numerics::HostArithmetic guard;
    const machine::BoundThread bound(*caller_cpu_);
    try {
      const Status ran = runner_.run(params, results, reinterpret_cast<char*>(arena_.get()), context);
      const Status landed = flights_.finish_all();  // in any case: what is on its way uses our memory
      RETURN_IF_ERROR(ran);
      RETURN_IF_ERROR(landed);
    } catch (const ir::AttrError& e) {
      return invalid_argument(fmt::format("program {}: {}", name_, e.message));
    }
    if (!ran_) runner_.clear_times();
    ran_ = true;
    return outputs;
  }

  runtime::ExecutableInfo info() const override {
    runtime::ExecutableInfo info = compile::info_of(module_);
    info.fallback_ops = runner_.fallback_steps();
    return info;
  }

  void release() override { arena_ = {}; }

 private:
  compile::Module module_;
  std::string name_;
  std::vector<std::string> param_names_;
  CompiledKernels kernels_;
  std::shared_ptr<machine::ThreadPool> pool_;
  std::shared_ptr<machine::CallerCpu> caller_cpu_;
  Flights flights_;
  PlanContext context_;
  PlanRunner runner_;
  AlignedBytes arena_;
  bool ran_ = false;
};

void warn_of_built_in_loops(const std::string& why) {
  log_warning(fmt::format("built-in loops instead of generated code (slower, the same bits): {}", why));
}

class CpuEngine final : public runtime::Engine, private runtime::Inspector {
 public:
  // Without a compiler: built-in loops.
  CpuEngine(CpuOptions options, const compile::Dialect* dialect, machine::Isa isa,
            std::shared_ptr<machine::ThreadPool> pool, std::shared_ptr<machine::CallerCpu> caller_cpu,
            std::unique_ptr<KernelCompiler> compiler)
      : info_{.name = fmt::format("cpu ({}, {} threads)", machine::isa_name(isa), pool->threads()),
              .tells_watch = true},
        options_(std::move(options)),
        dialect_(dialect),
        isa_(isa),
        pool_(std::move(pool)),
        caller_cpu_(std::move(caller_cpu)),
        compiler_(std::move(compiler)),
        generates_(compiler_ != nullptr) {}

  const runtime::EngineInfo& info() const override { return info_; }
  int64_t panel_columns(ir::DType d) const override {
    const bool is_float = d == ir::DType::f32 || d == ir::DType::bf16;
    return is_float ? kernels::panel_columns(gemm_type(d), isa_) : 0;
  }
  runtime::Inspector* inspector() override { return this; }

  Result<std::unique_ptr<runtime::Executable>> compile(const ir::Program& program,
                                                       const runtime::CompileOptions& options) override {
    ASSIGN_OR_RETURN(compile::Module module, lower(program, options));
    CompiledKernels kernels;
    if (!module.nests.empty()) {
      Result<CompiledKernels> compiled = compiler_->compile(write_kernels(module.nests, *dialect_));
      if (!compiled.ok() && options_.compiler_required) return compiled.error();
      if (compiled.ok()) {
        kernels = std::move(*compiled);
      } else {
        if (generates_.exchange(false)) warn_of_built_in_loops(compiled.error().message());
        ASSIGN_OR_RETURN(module, lower(program, options));
      }
    }
    return std::unique_ptr<runtime::Executable>(std::make_unique<CpuExecutable>(
        std::move(module), program, std::move(kernels), isa_, pool_, caller_cpu_));
  }

  Result<runtime::ExecutableInfo> estimate(const ir::Program& program,
                                           const runtime::CompileOptions& options) override {
    ASSIGN_OR_RETURN(const compile::Module module, lower(program, options));
    return compile::info_of(module);
  }

  Result<std::string> plan(const ir::Program& program, const runtime::CompileOptions& options) override {
    ASSIGN_OR_RETURN(const compile::Module module, lower(program, options));
    return fmt::format("{}:\n{}", program.name, compile::print_plan(module));
  }

  Result<std::string> explain(const ir::Program& program, const runtime::CompileOptions& options,
                              const runtime::Measured* measured) override {
    ASSIGN_OR_RETURN(const compile::Module module, lower(program, options, true));
    return compile::explain_plan(program.name, module, measured);
  }

  Result<runtime::MachineLimits> limits() override {
    runtime::MachineLimits limits;
    for (int i = 0; i < 20; ++i) {
      limits.f32_flops =
          std::max(limits.f32_flops, kernels::burst_peak(*pool_, isa_, kernels::GemmType::kF32));
      limits.bf16_flops =
          std::max(limits.bf16_flops, kernels::burst_peak(*pool_, isa_, kernels::GemmType::kBf16));
    }
    limits.bytes = kernels::stream_peak(*pool_);
    return limits;
  }

 private:
  // `reasons`: fills Step::not_fused.
  Result<compile::Module> lower(const ir::Program& program, const runtime::CompileOptions& options,
                                bool reasons = false) const {
    RETURN_IF_ERROR(ir::verify(program));
    ASSIGN_OR_RETURN(const ir::Program optimised, compile::run_passes(program, options));
    compile::LowerOptions lower_options;
    lower_options.kernels = generates_;
    lower_options.fuse = options_.fuse;
    lower_options.target = cpu_target();
    lower_options.target.tile_rows = options_.head_tile;
    lower_options.reasons = reasons;
    lower_options.donate = options.donate;
    return compile::lower(optimised, lower_options);
  }

  const runtime::EngineInfo info_;
  CpuOptions options_;
  const compile::Dialect* dialect_;
  machine::Isa isa_;
  std::shared_ptr<machine::ThreadPool> pool_;
  std::shared_ptr<machine::CallerCpu> caller_cpu_;
  std::unique_ptr<KernelCompiler> compiler_;
  std::atomic<bool> generates_;  // false from the compiler's first failure on
};

}  // namespace

Result<std::unique_ptr<runtime::Engine>> make_cpu_engine(const CpuOptions& options) {
  ASSIGN_OR_RETURN(const machine::Isa isa,
                   options.isa.empty() ? kernels::choose_isa() : kernels::choose_isa(options.isa));
  int threads = options.threads;
  if (threads == 0) {
    ASSIGN_OR_RETURN(threads, default_threads());
  }
  if (threads < 1) return invalid_argument(fmt::format("{} threads; give at least 1", threads));
  ASSIGN_OR_RETURN(std::vector<int> cpus, machine::affinity_from_environment(threads));
  auto caller_cpu = std::make_shared<machine::CallerCpu>();
  if (!cpus.empty()) caller_cpu->cpu = cpus[0];
  auto pool = std::make_shared<machine::ThreadPool>(threads, std::move(cpus));
  const compile::Dialect* dialect = compile::find_dialect(options.dialect);
  if (dialect == nullptr)
    return invalid_argument(fmt::format("dialect \"{}\"; use gnu or plain", options.dialect));
  std::unique_ptr<KernelCompiler> compiler;
  if (options.generated_code && isa != machine::Isa::kGeneric) {
    compiler = std::make_unique<KernelCompiler>(options.cc, options.cc_opt, options.cache_dir, isa, *dialect);
    if (!compiler->available()) {
      if (options.compiler_required) return unsupported(compiler->problem());
      warn_of_built_in_loops(compiler->problem());
      compiler.reset();
    }
  }
  return std::unique_ptr<runtime::Engine>(std::make_unique<CpuEngine>(
      options, dialect, isa, std::move(pool), std::move(caller_cpu), std::move(compiler)));
}

}  // namespace ostro::cpu
