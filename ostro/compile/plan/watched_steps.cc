#include "ostro/compile/plan/watched_steps.h"

#include <algorithm>
#include <functional>
#include <map>

namespace ostro::compile {
namespace {

// Calls visit(view, each) for operands or results of the step and of its epilogues; `each` as in
// WatchedArray, if iteration i of a loop takes part i of the view alone.
void each_view(const Step& step, std::vector<View> Step::* views,
               const std::function<void(const View&, int64_t each)>& visit) {
  size_t whole = (step.*views).size();
  int64_t length = 1;
  if (step.kind == StepKind::kLoop) {
    length = step.attrs.i64("length");
    const auto carries = static_cast<size_t>(step.attrs.i64("carries"));
    whole = views == &Step::out ? carries : static_cast<size_t>(step.attrs.i64("consts")) + carries;
  }
  for (size_t i = 0; i < (step.*views).size(); ++i) {
    const View& view = (step.*views)[i];
    visit(view, i < whole || length == 0 ? 0 : view.shape.bytes() / length);
  }
  for (const Step& epilogue : step.epilogues) each_view(epilogue, views, visit);
}

// What one step does with one buffer.
struct Touch {
  int64_t each = 0, times = 0;
  void add(const View& view, int64_t part, int64_t bytes) {
    const bool all = view.offset == 0 && view.dense() && view.shape.bytes() == bytes;
    each = times == 0 && all ? part : 0;
    ++times;
  }
};
using Touches = std::map<int32_t, Touch>;  // by buffer

Touches touched(const Plan& plan, const Step& step, std::vector<View> Step::* views, BufferKind kind) {
  Touches out;
  each_view(step, views, [&](const View& view, int64_t part) {
    const PlanBuffer& buffer = plan.buffers[static_cast<size_t>(view.buffer)];
    if (buffer.kind == kind) out[view.buffer].add(view, part, buffer.bytes);
  });
  return out;
}

}  // namespace

std::vector<WatchedStep> watched_steps(const Plan& plan) {
  std::vector<WatchedStep> out(plan.steps.size());
  std::map<int32_t, std::pair<size_t, int64_t>> last;  // by result: the last step that writes it, and `each`
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const auto& [number, touch] : touched(plan, plan.steps[i], &Step::in, BufferKind::kParam)) {
      const PlanBuffer& buffer = plan.buffers[static_cast<size_t>(number)];
      out[i].reads.push_back({buffer.index, number, buffer.bytes, touch.each});
    }
    // A step that reads the result that it writes may do so in another order than it writes.
    const Touches read = touched(plan, plan.steps[i], &Step::in, BufferKind::kResult);
    for (const auto& [number, touch] : touched(plan, plan.steps[i], &Step::out, BufferKind::kResult))
      last[number] = {i, read.contains(number) ? 0 : touch.each};
  }
  for (const auto& [number, at] : last) {
    const PlanBuffer& buffer = plan.buffers[static_cast<size_t>(number)];
    out[at.first].makes.push_back({buffer.index, number, buffer.bytes, at.second});
  }
  return out;
}

}  // namespace ostro::compile
