#include "ostro/base/check.h"
#include "ostro/cuda/steps/fast_routines.h"

namespace ostro::cuda {
namespace {

constexpr const char* kLosses = "losses/cross_entropy.cu";
constexpr int kGradThreads = 256;

// What the three have in common: the logits are operand 0, dense.
Result<args::CrossEntropyArgs> rows_of_logits(const StepCall& call) {
  args::CrossEntropyArgs a = {};
  a.logits = call.in[0].at.at;
  a.rows = call.in[1].count();
  const ir::Axis& vocab = call.in[0].shape().axes.back();
  a.vocab = vocab.size;
  a.z = static_cast<float>(call.attrs().f64("z", 0.0));
  RETURN_IF_ERROR(set_leaf_ends(call, 0, vocab, a));
  return a;
}

// Elements from a row of the gradient to the next one. Rows lie at even distances: dense, or where the rows
// of wider logits do (compile/plan/epilogues.h).
int64_t row_stride(const DeviceArray& gradient) {
  const std::vector<ir::Axis>& axes = gradient.shape().axes;
  const args::Axes rows = axes_over({axes.begin(), axes.end() - 1}, *gradient.view);
  OSTRO_CHECK(rows.rank <= 1 && (axes.back().size == 1 || gradient.view->strides.back() == 1),
              "a gradient of logits in {} strides", rows.rank);
  return rows.rank == 0 ? axes.back().size : rows.stride[0];
}

}  // namespace

Status run_cross_entropy(const StepCall& call) {
  ASSIGN_OR_RETURN(args::CrossEntropyArgs a, rows_of_logits(call));
  a.targets = call.in[1].at.at;
  a.origin = scalar_of(call.in[2]);
  a.loss = call.out[0].at.at;
  a.m = call.out[1].at.at;
  a.r = call.out[2].at.at;
  a.lse = call.out[3].at.at;
  return call.launch(kLosses, "cross_entropy", gpu::LaunchShape{.x = a.rows, .threads = 64}, a);
}

Status run_cross_entropy_sum(const StepCall& call) {
  ASSIGN_OR_RETURN(args::CrossEntropyArgs a, rows_of_logits(call));
  a.m = call.in[1].at.at;
  a.to = call.out[0].at.at;
  return call.launch(kLosses, "cross_entropy_sum", gpu::LaunchShape{.x = a.rows, .threads = 64}, a);
}

Status run_cross_entropy_grad(const StepCall& call) {
  ASSIGN_OR_RETURN(args::CrossEntropyArgs a, rows_of_logits(call));
  a.targets = call.in[1].at.at;
  a.m = call.in[2].at.at;
  a.r = call.in[3].at.at;
  a.lse = call.in[4].at.at;
  a.w = call.in[5].at.at;
  a.origin = scalar_of(call.in[6]);
  a.to = call.out[0].at.at;
  a.to_type = type_number(call.out[0].dtype());
  a.to_row = row_stride(call.out[0]);
  if (a.to == a.logits && call.out[0].dtype() != call.in[0].dtype())
    return call.launch(kLosses, "cross_entropy_grad_over",
                       gpu::LaunchShape{.x = a.rows, .threads = kGradThreads}, a);
  if (!call.kernels.fast(Fast::kReductions))
    return call.launch(kLosses, "cross_entropy_grad", a.rows * a.vocab, a);
  const int64_t parts = (a.vocab + 4 * kGradThreads - 1) / (4 * kGradThreads);
  return call.launch("losses/cross_entropy_parts.cu", "cross_entropy_grad_parts",
                     gpu::LaunchShape{.x = a.rows * parts, .threads = kGradThreads}, a);
}

}  // namespace ostro::cuda
