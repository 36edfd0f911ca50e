// PlanWalk: runs the steps of a plan in their order, and finds the memory of each: the places of buffers, the
// carries of a loop, the part of an array that an iteration or a tile takes, and the region of a branch that
// runs.
//
// The Runner, a class derived from PlanWalk<Runner, Pointer>, executes the steps; there is one object for a
// plan and one for each of its regions. Pointer is an address in the memory of the engine; adding a number of
// bytes moves it. Runner has these members (PlanWalk may be its friend):
//
// - Status run_step(size_t step, const Context&): runs a copy, a kernel or an op, and gives every other step
//   to run_nested.
// - Runner& region(size_t step, size_t number): the Runner of a nested plan.
// - Status move(Pointer to, Pointer from, int64_t bytes): copies within the engine's memory.
// - Result<bool> is_true(Pointer): the value of a bool, once the steps before are done.
// - class LoopPlace with void set(int64_t i): is told the iteration, and lives as long as the loop runs.
//
// It may have before_iteration and after_iteration, which are called around each iteration of a loop with the
// number of its step, the index that the iteration works on, and the context.
//
// Borrows the plan. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

template <class Runner, class Pointer>
class PlanWalk {
 public:
  // `params` and `results` in their order; `arena` has plan.arena_bytes. Values without elements need no
  // memory. `go_on`: this is not the first tile (StepKind::kTiles), so dots add to their results
  // (Step::goes_on). Stops at the first step that fails.
  template <class Context>
  Status run(std::span<const Pointer> params, std::span<const Pointer> results, Pointer arena,
             const Context& context, bool go_on = false) {
    go_on_ = go_on;
    for (size_t i = 0; i < base_.size(); ++i) {
      const PlanBuffer& b = plan_.buffers[i];
      if (b.kind == BufferKind::kParam) base_[i] = params[static_cast<size_t>(b.index)];
      if (b.kind == BufferKind::kResult) base_[i] = results[static_cast<size_t>(b.index)];
      if (b.kind == BufferKind::kTemp)
        base_[i] = (b.host < 0 ? arena : results[static_cast<size_t>(buffer(b.host).index)]) + b.offset;
    }
    for (size_t i = 0; i < plan_.steps.size(); ++i)
      if (Status s = self().run_step(i, context); !s.ok()) return s;
    return Status();
  }

 protected:
  // `constants`: where Plan::constants lie.
  PlanWalk(const Plan& plan, std::span<const Pointer> constants) : plan_(plan), base_(plan.buffers.size()) {
    for (size_t i = 0; i < base_.size(); ++i)
      if (plan.buffers[i].kind == BufferKind::kConstant)
        base_[i] = constants[static_cast<size_t>(plan.buffers[i].index)];
  }

  const Plan& plan() const { return plan_; }
  const PlanBuffer& buffer(int32_t number) const { return plan_.buffers[static_cast<size_t>(number)]; }
  // Where a buffer of the present run begins, and the element of a view with all indices 0.
  Pointer base(int32_t number) const { return base_[static_cast<size_t>(number)]; }
  Pointer data(const View& view) const {
    return view.offset == 0 ? base(view.buffer)
                            : base(view.buffer) + view.offset * ir::dtype_size(view.shape.dtype);
  }
  bool go_on() const { return go_on_; }

  template <class Context>
  Status before_iteration(size_t /*step*/, int64_t /*index*/, const Context&) {
    return Status();
  }
  template <class Context>
  Status after_iteration(size_t /*step*/, int64_t /*index*/, const Context&) {
    return Status();
  }

  // A loop, a branch or tiles.
  template <class Context>
  Status run_nested(size_t index, const Context& context) {
    const Step& step = plan_.steps[index];
    if (step.kind == StepKind::kLoop) return run_loop(index, step, context);
    return step.kind == StepKind::kTiles ? run_tiles(index, step, context) : run_branch(index, step, context);
  }

 private:
  Runner& self() { return static_cast<Runner&>(*this); }

  // Operands: constants, carries, arrays of which an iteration reads one part. Results: carries, arrays of
  // which it writes one part. Between the first and the last iteration a carry alternates between two slots.
  template <class Context>
  Status run_loop(size_t index, const Step& step, const Context& context) {
    const int64_t length = step.attrs.i64("length");
    const auto consts = static_cast<size_t>(step.attrs.i64("consts"));
    const auto carries = static_cast<size_t>(step.attrs.i64("carries"));
    const bool reverse = step.attrs.i64("reverse", 0) != 0;
    std::vector<Pointer> in, out, params, results(step.out.size());
    for (const View& v : step.in) in.push_back(data(v));
    for (const View& v : step.out) out.push_back(data(v));
    for (size_t k = 0; length == 0 && k < carries; ++k)
      RETURN_IF_ERROR(self().move(out[k], in[consts + k], step.out[k].shape.bytes()));
    const auto slot = [&](size_t carry, int64_t iteration) {
      return base(step.slots[2 * carry + static_cast<size_t>(iteration & 1)]);
    };
    typename Runner::LoopPlace place;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = reverse ? length - 1 - i : i;
      place.set(at);
      params = in;
      for (size_t k = 0; k < carries; ++k) {
        if (i > 0) params[consts + k] = slot(k, i - 1);
        results[k] = i + 1 == length ? out[k] : slot(k, i);
      }
      for (size_t k = consts + carries; k < in.size(); ++k)
        params[k] = in[k] + at * (step.in[k].shape.bytes() / length);
      for (size_t k = carries; k < out.size(); ++k)
        results[k] = out[k] + at * (step.out[k].shape.bytes() / length);
      RETURN_IF_ERROR(self().before_iteration(index, at, context));
      RETURN_IF_ERROR(run_region(index, 0, params, results, context, false));
      RETURN_IF_ERROR(self().after_iteration(index, at, context));
    }
    return Status();
  }

  template <class Context>
  Status run_tiles(size_t index, const Step& step, const Context& context) {
    std::vector<Pointer> params, results;
    for (const View& v : step.in) params.push_back(base(v.buffer));
    for (const View& v : step.out) results.push_back(base(v.buffer));
    typename Runner::LoopPlace place;
    const auto tiles = step.extent + static_cast<int64_t>(step.regions.size()) - 1;
    for (int64_t i = 0; i < tiles; ++i) {
      place.set(i);
      RETURN_IF_ERROR(run_region(index, i < step.extent ? 0 : 1, params, results, context, i > 0));
      for (size_t k = 0; k < params.size(); ++k) params[k] = params[k] + step.in_advance[k];
      for (size_t k = 0; k < results.size(); ++k) results[k] = results[k] + step.out_advance[k];
    }
    return Status();
  }

  template <class Context>
  Status run_branch(size_t index, const Step& step, const Context& context) {
    std::vector<Pointer> params, results;
    for (size_t i = 1; i < step.in.size(); ++i) params.push_back(data(step.in[i]));
    for (const View& v : step.out) results.push_back(data(v));
    ASSIGN_OR_RETURN(const bool taken, self().is_true(data(step.in[0])));
    return run_region(index, taken ? 0 : 1, params, results, context, false);
  }

  template <class Context>
  Status run_region(size_t index, size_t number, const std::vector<Pointer>& params,
                    const std::vector<Pointer>& results, const Context& context, bool go_on) {
    PlanWalk& region = self().region(index, number);
    return region.run(std::span<const Pointer>(params), std::span<const Pointer>(results),
                      base(plan_.steps[index].arena), context, go_on);
  }

  const Plan& plan_;
  std::vector<Pointer> base_;  // by buffer
  bool go_on_ = false;         // of the present run
};

}  // namespace ostro::compile
