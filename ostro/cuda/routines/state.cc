#include <algorithm>

#include "ostro/cuda/routines/routines.h"
#include "ostro/numerics/fingerprint.h"

namespace ostro::cuda {
namespace {

constexpr const char* kState = "routines/state.cu";
constexpr int64_t kWordsOfThread = 64;  // of the kernel `fingerprint`
constexpr const char* kBoxes = "routines/boxes.cu";
constexpr int64_t kLargeBox = 32768;       // elements from which on threads share the lanes of a box
constexpr int kWordThreads = 256;          // of a block of the kernel `fingerprint_words`
constexpr int64_t kFewWords = 8;           // that a thread of it takes at least
constexpr int64_t kBlocksOfProcessor = 8;  // of it that run at a time

// Axes join that are whole in every box, and lie together.
args::BoxArgs joined(const args::BoxArgs& a) {
  args::BoxArgs out = a;
  out.rank = 0;
  for (int64_t i = 0; i < a.rank; ++i) {
    const int64_t last = out.rank - 1;
    const bool whole = a.boxes[i] == 1 && a.length[i] >= a.size[i];
    if (last >= 0 && whole && out.stride[last] == a.stride[i] * a.size[i]) {
      out.size[last] *= a.size[i];
      out.length[last] *= a.size[i];
      out.stride[last] = a.stride[i];
      continue;
    }
    out.size[out.rank] = a.size[i];
    out.stride[out.rank] = a.stride[i];
    out.boxes[out.rank] = a.boxes[i];
    out.length[out.rank++] = a.length[i];
  }
  return out;
}

Status add_large_boxes(const StepCall& call, args::BoxArgs a, int64_t boxes) {
  ASSIGN_OR_RETURN(a.lane_sums, call.scratch(0, boxes * 64 * 8));
  // Blocks of few lanes read memory in small pieces, so lanes are spread only where blocks would be few.
  a.lanes = 8;
  while (a.lanes > 2 && boxes * 64 / a.lanes <= 2 * call.device().limits().multiprocessors) a.lanes /= 2;
  RETURN_IF_ERROR(call.launch(kBoxes, "box_lanes",
                              gpu::LaunchShape{.x = boxes * 64 / a.lanes, .threads = 256}, joined(a)));
  return call.launch(kBoxes, "box_join", gpu::LaunchShape{.x = boxes, .threads = 64}, a);
}

}  // namespace

Status run_box_sumsq(const StepCall& call) {
  const DeviceArray &x = call.in[0], &out = call.out[0];
  args::BoxArgs a = {};
  a.from = x.at.at;
  a.to = out.at.at;
  a.rank = x.shape().rank();
  int64_t largest = 1;
  for (size_t i = 0; i < x.shape().axes.size(); ++i) {
    const ir::Axis& axis = x.shape().axes[i];
    a.size[i] = axis.size;
    a.stride[i] = x.view->strides[i];
    a.boxes[i] = out.shape().has(axis.name) ? out.shape().size_of(axis.name) : 1;
    a.length[i] = compile::box_length(call.attrs(), axis, a.boxes[i]);
    largest *= std::min(a.size[i], a.length[i]);
  }
  if (largest >= kLargeBox && call.kernels.fast(Fast::kReductions))
    return add_large_boxes(call, a, out.count());
  return call.launch(kState, "box_sumsq", gpu::LaunchShape{.x = out.count(), .threads = 64}, a);
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
  a.rank = axes.empty() ? 0 : static_cast<int64_t>(axes.size()) - 1;
  int64_t stride = 1;
  for (auto k = static_cast<size_t>(a.rank); k-- > 0; stride *= whole[k]) a.origin_stride[k] = stride;
  a.row_axes = axes_with({axes.begin(), axes.begin() + a.rank}, {a.origin_stride, a.origin_stride + a.rank});
  for (size_t k = 0; k < axes.size(); ++k) a.origin[k] = scalar_of(call.in[1 + k]);
  const int64_t words = numerics::fingerprint_words_per_row(a.length, a.element_bytes), all = a.rows * words;
  if (!call.kernels.fast(Fast::kReductions))
    return call.launch(kState, "fingerprint", (all + kWordsOfThread - 1) / kWordsOfThread, a);
  const bool whole_words = a.length % numerics::fingerprint_per_word(a.element_bytes) == 0 && a.from % 8 == 0;
  const bool rows_follow = a.row_axes.rank == 1 && a.row_axes.stride[0] == 1 && words == a.whole_words;
  a.in_a_line = whole_words && (a.rows == 1 || rows_follow) ? 1 : 0;
  const int64_t most = call.device().limits().multiprocessors * kBlocksOfProcessor;
  const int64_t blocks =
      std::min<int64_t>(most, (all + kWordThreads * kFewWords - 1) / (kWordThreads * kFewWords));
  a.threads = blocks * kWordThreads;
  return call.launch("routines/fingerprints.cu", "fingerprint_words",
                     gpu::LaunchShape{.x = blocks, .threads = kWordThreads}, a);
}

}  // namespace ostro::cuda
