#include <algorithm>

#include "ostro/cuda/routines/routines.h"
#include "ostro/numerics/fingerprint.h"

namespace ostro::cuda {
namespace {

constexpr const char* kState = "routines/state.cu";
constexpr int64_t kWordsOfThread = 64;  // of the kernel `fingerprint`

}  // namespace

Status run_box_sumsq(const StepCall& call) {
  const DeviceArray &x = call.in[0], &out = call.out[0];
  args::BoxArgs a = {};
  a.from = x.at.at;
  a.to = out.at.at;
  a.rank = x.shape().rank();
  for (size_t i = 0; i < x.shape().axes.size(); ++i) {
    const ir::Axis& axis = x.shape().axes[i];
    a.size[i] = axis.size;
    a.stride[i] = x.view->strides[i];
    a.boxes[i] = out.shape().has(axis.name) ? out.shape().size_of(axis.name) : 1;
    a.length[i] = compile::box_length(call.attrs(), axis, a.boxes[i]);
  }
  return call.launch(kState, "box_sumsq", LaunchShape{.x = out.count(), .threads = 64}, a);
}

Status run_fingerprint(const StepCall& call) {
  const DeviceArray& x = call.in[0];
  RETURN_IF_ERROR(fill_zero(call, call.out[0].at, 16));
  args::FingerprintArgs a = {};
  a.from = x.at.at;
  a.to = call.out[0].at.at;
  a.element_bytes = ir::dtype_size(x.dtype());
  const std::vector<ir::Axis>& axes = x.shape().axes;
  const std::vector<int64_t>& whole = call.attrs().ints("global_sizes");
  a.length = axes.empty() ? 1 : axes.back().size;
  a.rows = a.length == 0 ? 0 : x.count() / a.length;
  a.whole_words = numerics::fingerprint_words_per_row(axes.empty() ? 1 : whole.back(), a.element_bytes);
  a.row_axes.rank = axes.empty() ? 0 : static_cast<int64_t>(axes.size()) - 1;
  int64_t stride = 1;
  for (auto k = static_cast<size_t>(a.row_axes.rank); k-- > 0; stride *= whole[k]) {
    a.row_axes.size[k] = axes[k].size;
    a.row_axes.stride[k] = stride;
  }
  for (size_t k = 0; k < axes.size(); ++k) a.origin[k] = scalar_of(call.in[1 + k]);
  const int64_t words = a.rows * numerics::fingerprint_words_per_row(a.length, a.element_bytes);
  return call.launch(kState, "fingerprint", (words + kWordsOfThread - 1) / kWordsOfThread, a);
}

}  // namespace ostro::cuda
