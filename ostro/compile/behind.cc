#include "ostro/compile/behind.h"

#include <algorithm>

namespace ostro::compile {
namespace {

// The array is whole and its rows are whole words, so that its memory is one run of words. All of it is
// `made`.
bool one_run_of(const Plan& plan, const Step& print, const View& made) {
  const View& x = print.in[0];
  const std::vector<int64_t>& global = print.attrs.ints("global_sizes");
  const auto& axes = x.shape.axes;
  if (axes.empty() || axes.back().size * ir::dtype_size(x.shape.dtype) % 8 != 0) return false;
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].size != global[i]) return false;
  for (size_t i = 1; i < print.in.size(); ++i)
    if (plan.buffers[static_cast<size_t>(print.in[i].buffer)].kind != BufferKind::kConstant) return false;
  return x.buffer == made.buffer && x.offset == 0 && made.offset == 0 && x.dense() && made.dense() &&
         x.shape.count() == made.shape.count();
}

}  // namespace

void put_fingerprints_behind(Plan& plan) {
  for (size_t s = plan.steps.size(); s-- > 0;) {
    Step& print = plan.steps[s];
    if (print.kind != StepKind::kOp || print.op != ir::OpKind::fingerprint) continue;
    const auto maker = std::find_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
      return step.kind == StepKind::kKernel && step.pointwise &&
             std::any_of(step.out.begin(), step.out.end(),
                         [&](const View& v) { return one_run_of(plan, print, v); });
    });
    if (maker == plan.steps.end()) continue;
    maker->flops += print.flops;
    maker->behind.push_back(std::move(print));
    plan.steps.erase(plan.steps.begin() + static_cast<int64_t>(s));
  }
}

}  // namespace ostro::compile
