// DeviceRunner: runs a Plan on a device: each step is a launch or a copy in the device's queue.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ostro/compile/plan/plan.h"
#include "ostro/compile/plan/walk.h"
#include "ostro/cuda/device/step_call.h"
#include "ostro/runtime/engine.h"

namespace ostro::cuda {

// What all plans of a Module share while running.
struct DeviceContext {
  std::string program;
  const compile::Module* module = nullptr;
  Kernels* kernels = nullptr;
  const std::vector<Kernel>* fused = nullptr;  // of Module::nests
};

// Borrows the plan and the context. Not thread-safe. run() is PlanWalk's. Only the condition of a branch is
// waited for.
class DeviceRunner : public compile::PlanWalk<DeviceRunner, Address> {
 public:
  // `constants`: where Plan::constants lie.
  DeviceRunner(const compile::Plan& plan, const DeviceContext& context, std::vector<Address> constants,
               std::string place);

  // Uploads the constants of a plan and of all plans nested in it, whose blocks go to `kept`.
  static Result<std::unique_ptr<DeviceRunner>> make(const compile::Plan& plan, const DeviceContext& context,
                                                    std::string place,
                                                    std::vector<std::shared_ptr<runtime::Block>>& kept);

  // Frees the tables and the working memory that steps keep from one run to the next.
  void release();

 private:
  friend compile::PlanWalk<DeviceRunner, Address>;
  struct LoopPlace {
    static void set(int64_t /*iteration*/) {}
  };
  struct Prepared {
    StepState state;
    std::vector<std::unique_ptr<DeviceRunner>> regions;
    std::string place;  // "leaf 12.0.3: layers/mlp dot"
  };

  std::vector<DeviceArray> arrays(const std::vector<compile::View>& views) const;
  Status run_step(size_t index, const runtime::RunContext& run_context);
  Status run_fused(const compile::Step& step, const std::string& place);
  DeviceRunner& region(size_t step, size_t number) { return *prepared_[step].regions[number]; }
  Status move(Address to, Address from, int64_t bytes) {
    return context_.kernels->device().copy(to, from, bytes);
  }
  Result<bool> is_true(Address at);

  const DeviceContext& context_;
  std::vector<Prepared> prepared_;
};

}  // namespace ostro::cuda
