// DeviceRunner: runs a Plan on a device: each step is a launch or a copy in the device's queue.
//
// Steps are put into the queue without waiting for them; only the condition of a branch is waited for. During
// a profile (base/profile.h) each step is waited for, and is a span. Errors are those of the device, with the
// name of the program and the step. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/base/profile.h"
#include "ostro/compile/plan/plan.h"
#include "ostro/compile/plan/step_label.h"
#include "ostro/compile/plan/walk.h"
#include "ostro/cuda/steps/step_call.h"
#include "ostro/runtime/engine.h"

namespace ostro::cuda {

// The parts that all plans of a Module share while they run.
struct DeviceContext {
  std::string program;  // its name, for errors
  const compile::Module* module = nullptr;
  Kernels* kernels = nullptr;
  const std::vector<gpu::Kernel>* fused = nullptr;  // the kernel of each of Module::nests
  bool fast_nests = true;                           // how they were written
  std::vector<std::byte>* host = nullptr;           // StepCall::host
  bool planned = false;                             // the walk of planned_blocks.h
};

// Borrows the plan and the context. PlanWalk::run() runs it.
class DeviceRunner : public compile::PlanWalk<DeviceRunner, gpu::Address> {
 public:
  // `constants` are the addresses of Plan::constants. `place` begins the numbers of steps in errors: "" for
  // the outermost plan, "12.0." for the first region of step 12.
  DeviceRunner(const compile::Plan& plan, const DeviceContext& context, std::vector<gpu::Address> constants,
               std::string place);

  // Makes a runner, and uploads the constants of the plan and of all plans nested in it. Their blocks are
  // appended to `kept`, which must outlive the runner.
  static Result<std::unique_ptr<DeviceRunner>> make(const compile::Plan& plan, const DeviceContext& context,
                                                    std::string place,
                                                    std::vector<std::shared_ptr<runtime::Block>>& kept);

  // Gives the steps the labels that they need to be spans of a profile. Only the first call has an effect.
  void label_steps();
  // Frees the tables and the working memory that steps keep from one run to the next.
  void release();

 private:
  friend compile::PlanWalk<DeviceRunner, gpu::Address>;
  using LoopPlace = compile::SpanIteration;
  struct Prepared {
    StepState state;
    std::vector<StepState> epilogues;  // of Step::epilogues
    std::vector<std::unique_ptr<DeviceRunner>> regions;
    std::string place;   // "leaf 12.0.3: layers/mlp dot"
    SpanLabelPtr label;  // null: never profiled
  };

  std::vector<DeviceArray> arrays(const std::vector<compile::View>& views) const;
  Status run_step(size_t index, const runtime::RunContext& run_context);
  // run_step() without its span.
  Status begin_step(size_t index, const runtime::RunContext& run_context);
  // Both sides of a branch, for a plan.
  Status walk_branch(size_t index, const runtime::RunContext& run_context);
  Status run_op(const compile::Step& step, StepState& state, const std::string& place,
                const runtime::RunContext& run_context);
  Status run_fused(const compile::Step& step, const std::string& place);
  DeviceRunner& region(size_t step, size_t number) { return *prepared_[step].regions[number]; }
  Status move(gpu::Address to, gpu::Address from, int64_t bytes) {
    return context_.kernels->device().copy(to, from, bytes);
  }
  Result<bool> is_true(gpu::Address at);

  const DeviceContext& context_;
  const std::string place_;
  std::vector<Prepared> prepared_;
  bool side_ = false;  // of the branch that walk_branch() walks
};

}  // namespace ostro::cuda
