#include "ostro/cuda/routines/routines.h"

namespace ostro::cuda {
namespace {

constexpr const char* kCopies = "routines/copies.cu";
constexpr int64_t kWordsOfBlock = 4 * 256;  // of the kernel fill_words

// The space of an array's indices, with axes joined that lie together in both arrays.
args::RunsArgs runs_of(const DeviceArray& from, const DeviceArray& to) {
  args::RunsArgs a = {};
  a.from = from.at.at;
  a.to = to.at.at;
  a.element_bytes = ir::dtype_size(from.dtype());
  a.count = from.count();
  const std::vector<ir::Axis>& axes = from.shape().axes;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t size = axes[i].size, stride = from.view->strides[i], to_stride = to.view->strides[i];
    if (size == 1) continue;
    const int64_t last = a.axes.rank - 1;
    if (last >= 0 && a.axes.stride[last] == stride * size && a.to_stride[last] == to_stride * size) {
      a.axes.size[last] *= size;
      a.axes.stride[last] = stride;
      a.to_stride[last] = to_stride;
      continue;
    }
    a.axes.size[a.axes.rank] = size;
    a.axes.stride[a.axes.rank] = stride;
    a.to_stride[a.axes.rank++] = to_stride;
  }
  return a;
}

// Neighbours that lie together in both arrays become one element, of up to 16 bytes.
void widen(args::RunsArgs& a) {
  const int64_t last = a.axes.rank - 1;
  if (last < 0 || a.axes.stride[last] != 1 || a.to_stride[last] != 1) return;
  int64_t all = static_cast<int64_t>(a.from | a.to) | a.axes.size[last] * a.element_bytes;
  for (int64_t k = 0; k < last; ++k) all |= (a.axes.stride[k] | a.to_stride[k]) * a.element_bytes;
  int64_t bytes = 16;
  while (bytes > a.element_bytes && all % bytes != 0) bytes /= 2;
  const int64_t each = bytes / a.element_bytes;
  for (int64_t k = 0; k < last; ++k) {
    a.axes.stride[k] /= each;
    a.to_stride[k] /= each;
  }
  a.axes.size[last] /= each;
  a.count /= each;
  a.element_bytes = bytes;
}

}  // namespace

Status copy_runs(const StepCall& call, const DeviceArray& from, const DeviceArray& to) {
  args::RunsArgs a = runs_of(from, to);
  widen(a);
  return call.launch(kCopies, "copy_runs", a.count, a);
}

Status fill_words(const StepCall& call, gpu::Address to, int64_t bytes) {
  if (bytes == 0) return Status();
  const int64_t blocks = bytes / 8 / kWordsOfBlock + 1;  // all whole words, and threads for bytes behind them
  return call.launch(kCopies, "fill_words", gpu::LaunchShape{.x = blocks, .threads = 256},
                     args::FillWordsArgs{to.at, bytes, blocks * 256});
}

}  // namespace ostro::cuda
