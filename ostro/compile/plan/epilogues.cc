#include "ostro/compile/plan/epilogues.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ostro/compile/plan/step_views.h"

namespace ostro::compile {
namespace {

// True when the fingerprint covers a whole array whose rows are whole words, so that its memory is one run of
// words, and `made` is all of that array.
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

bool same_place(const View& a, const View& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.strides == b.strides && a.shape == b.shape;
}

bool is_gradient_of(const Step& grad, const Step& loss) {
  if (grad.kind != StepKind::kOp || grad.op != ir::OpKind::cross_entropy_grad) return false;
  if (loss.kind != StepKind::kOp || loss.op != ir::OpKind::cross_entropy || !loss.epilogues.empty())
    return false;
  for (size_t i = 0; i < 3; ++i)  // m, r and lse
    if (!same_place(grad.in[2 + i], loss.out[1 + i])) return false;
  return same_place(grad.in[0], loss.in[0]) && same_place(grad.in[1], loss.in[1]) &&
         same_place(grad.in[6], loss.in[2]) && grad.attrs.f64("z", 0.0) == loss.attrs.f64("z", 0.0);
}

// The steps between `first` and `last` that `last` depends on, ascending. Nothing when one of them depends on
// `first`. (`last` itself may read results of `first`.)
std::optional<std::vector<size_t>> needed_between(const Plan& plan, size_t first, size_t last) {
  std::set<int32_t> wanted;
  for (const View& v : plan.steps[last].in) wanted.insert(v.buffer);
  for (const View& v : plan.steps[first].out) wanted.erase(v.buffer);
  std::vector<size_t> needed;
  for (size_t s = last; s-- > first + 1;) {
    const Step& step = plan.steps[s];
    const bool makes = std::any_of(step.out.begin(), step.out.end(),
                                   [&](const View& v) { return wanted.count(v.buffer) != 0; });
    if (!makes) continue;
    needed.push_back(s);
    for_views(step, [&](const View& v) { wanted.insert(v.buffer); });
  }
  for (const View& v : plan.steps[first].out)
    if (wanted.count(v.buffer) != 0) return std::nullopt;
  std::reverse(needed.begin(), needed.end());
  return needed;
}

// Lets the gradient in the epilogues of step `at` overwrite the logits. A bf16 gradient is half as wide, so
// there are gaps between its rows; products and quantisers can read such rows.
void overwrite_logits(Plan& plan, size_t at) {
  Step& loss = plan.steps[at];
  const View logits = loss.in[0], gradient = loss.epilogues[0].out[0];
  const auto kind = [&](int32_t b) { return plan.buffers[static_cast<size_t>(b)].kind; };
  if (kind(logits.buffer) != BufferKind::kTemp || kind(gradient.buffer) != BufferKind::kTemp) return;
  if (logits.offset != 0 || !logits.dense()) return;
  const int64_t vocab = logits.shape.axes.back().size;
  const int64_t spread = ir::dtype_size(logits.shape.dtype) / ir::dtype_size(gradient.shape.dtype);
  const auto between_rows = [&](int64_t stride) { return stride % vocab == 0 && stride >= vocab; };
  bool possible = true;
  for (size_t s = at + 1; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    for_views(step, [&](const View& v) {
      if (v.buffer == logits.buffer) possible = false;
      if (v.buffer != gradient.buffer || spread == 1) return;
      if (step.kind != StepKind::kOp || v.offset != 0) possible = false;
      if (step.op != ir::OpKind::dot && step.op != ir::OpKind::quantize) possible = false;
      int64_t inside = 0;  // the furthest element of a row
      for (size_t i = 0; i < v.strides.size(); ++i) {
        if (v.strides[i] < 0) possible = false;
        if (!between_rows(v.strides[i])) inside += (v.shape.axes[i].size - 1) * v.strides[i];
      }
      if (inside >= vocab) possible = false;
    });
    if (step.arena == logits.buffer) possible = false;
  }
  if (!possible) return;
  for (size_t s = at; s < plan.steps.size(); ++s)
    for_views(plan.steps[s], [&](View& v) {
      if (v.buffer != gradient.buffer) return;
      v.buffer = logits.buffer;
      for (int64_t& stride : v.strides)
        if (between_rows(stride)) stride *= spread;
    });
}

}  // namespace

void add_gradient_epilogues(Plan& plan) {
  for (size_t at = 0; at < plan.steps.size(); ++at) {
    const auto begin = plan.steps.begin() + static_cast<int64_t>(at);
    const auto found = std::find_if(begin + 1, plan.steps.end(),
                                    [&](const Step& step) { return is_gradient_of(step, *begin); });
    if (found == plan.steps.end()) continue;
    const auto last = static_cast<size_t>(found - plan.steps.begin());
    const auto needed = needed_between(plan, at, last);
    if (!needed) continue;
    Step gradient = std::move(*found);
    plan.steps.erase(found);
    for (size_t i = 0; i < needed->size(); ++i)  // each to just before the loss, which moves on
      std::rotate(plan.steps.begin() + static_cast<int64_t>(at + i),
                  plan.steps.begin() + static_cast<int64_t>((*needed)[i]),
                  plan.steps.begin() + static_cast<int64_t>((*needed)[i] + 1));
    at += needed->size();
    plan.steps[at].flops += gradient.flops;
    plan.steps[at].epilogues.push_back(std::move(gradient));
    overwrite_logits(plan, at);
  }
}

void add_fingerprint_epilogues(Plan& plan) {
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
    maker->epilogues.push_back(std::move(print));
    plan.steps.erase(plan.steps.begin() + static_cast<int64_t>(s));
  }
}

}  // namespace ostro::compile
