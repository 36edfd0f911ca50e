// Runs a Plan: the prepared form of its steps, and the loop over them.
#pragma once

#include <memory>
#include <vector>

#include "ostro/compile/plan/plan.h"
#include "ostro/compile/plan/step_label.h"
#include "ostro/compile/plan/walk.h"
#include "ostro/compile/plan/watched_steps.h"
#include "ostro/cpu/plan/times.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/machine/isa.h"
#include "ostro/machine/thread_pool.h"
#include "ostro/products/gemm.h"
#include "ostro/runtime/engine.h"

namespace ostro::cpu {

using KernelFunction = void (*)(char* const* buffers, int64_t begin, int64_t end);

// What all plans of a Module share while running.
struct PlanContext {
  const numerics::LeafTable* leaves = nullptr;
  const std::vector<KernelFunction>* kernels = nullptr;
  machine::ThreadPool* pool = nullptr;
  machine::Isa isa = machine::Isa::kGeneric;
  Flights* flights = nullptr;
};

// Borrows the plan and the context. Not thread-safe. run() is PlanWalk's.
class PlanRunner : public compile::PlanWalk<PlanRunner, char*> {
 public:
  PlanRunner(const compile::Plan& plan, const PlanContext& context);
  ~PlanRunner();

  // From now on runs tell RunContext::watch, if there is one. For the plan of a whole program.
  void tell_watch() { watched_ = compile::watched_steps(plan()); }

  // Number of steps that run built-in loops although generated or tuned code would be expected.
  int64_t fallback_steps() const;

  // Appends the time of each step, including steps of nested plans. Appends nothing unless
  // plan_times_wanted().
  void append_times(std::vector<StepRow>& rows, int depth = 0) const;
  // Gives the steps the labels that they need to be spans of a profile. Only the first call has an effect.
  // `place` is put in front of their numbers.
  void label_steps(const std::string& program, const std::string& place = "");
  // Forgets the times so far: those of the first run, in which all memory is touched for the first time.
  void clear_times();

 private:
  friend compile::PlanWalk<PlanRunner, char*>;
  using LoopPlace = compile::SpanIteration;
  struct Prepared {
    std::unique_ptr<kernels::Gemm> gemm;
    std::unique_ptr<kernels::PackedB> packed;  // Step::keeps_b
    std::vector<std::unique_ptr<PlanRunner>> regions;
  };

  std::vector<Array> arrays(const std::vector<compile::View>& views) const;
  // Waits for the exchanges that a step must not overtake.
  Status land_before(const compile::Step& step);
  Status run_step(size_t index, const runtime::RunContext& run_context);
  // run_step() without what a watch is told.
  Status run_unwatched(size_t index, const runtime::RunContext& run_context);
  bool watches(const runtime::RunContext& run_context) const {
    return run_context.watch != nullptr && !watched_.empty();
  }
  // Tell the watch of the arrays that the step takes as a whole or, with an iteration, in parts.
  Status tell_reads(size_t step, int64_t iteration, runtime::RunWatch& watch);
  Status tell_makes(size_t step, int64_t iteration, runtime::RunWatch& watch);
  Status before_iteration(size_t step, int64_t index, const runtime::RunContext& run_context) {
    return watches(run_context) ? tell_reads(step, index, *run_context.watch) : Status();
  }
  Status after_iteration(size_t step, int64_t index, const runtime::RunContext& run_context) {
    return watches(run_context) ? tell_makes(step, index, *run_context.watch) : Status();
  }
  PlanRunner& region(size_t step, size_t number) { return *prepared_[step].regions[number]; }
  static Status move(char* to, const char* from, int64_t bytes);
  static Result<bool> is_true(const char* at) { return *at != 0; }
  Status run_op(const compile::Step& step, const Prepared& prepared, const runtime::RunContext& run_context);
  Status run_kernel(const compile::Step& step);

  const PlanContext& context_;
  std::vector<Prepared> prepared_;
  std::vector<StepTime> times_;                // by step; empty: not measured
  std::vector<SpanLabelPtr> labels_;           // by step; empty: never profiled
  std::vector<compile::WatchedStep> watched_;  // by step; empty: no watch is told
};

}  // namespace ostro::cpu
