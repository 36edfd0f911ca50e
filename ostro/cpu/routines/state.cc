// Reductions of whole arrays for the optimizer and for fingerprints of a run: sums of squares per box
// (docs/spec/numerics.md N13) and fingerprints (N14). Dense operands. Both run near memory bandwidth.
#include <algorithm>
#include <mutex>

#include "ostro/cpu/routines/fingerprint_sum.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/numerics/sums.h"

namespace ostro::cpu {
namespace {

constexpr int kNormLanes = numerics::kStripes;

// Adds the squares of n floats to the lanes, the first one to lane `lane`. Returns the lane of the element
// that would come next.
int add_squares(const float* x, int64_t n, double* lanes, int lane) {
  int64_t i = 0;
  for (; lane != 0 && i < n; ++i) {
    const double v = x[i];
    lanes[lane] = lanes[lane] + v * v;
    lane = (lane + 1) % kNormLanes;
  }
  for (; i + kNormLanes <= n; i += kNormLanes)
    for (int l = 0; l < kNormLanes; ++l) {
      const double v = x[i + l];
      lanes[l] = lanes[l] + v * v;
    }
  for (; i < n; ++i) {
    const double v = x[i];
    lanes[lane] = lanes[lane] + v * v;
    lane = (lane + 1) % kNormLanes;
  }
  return lane;
}

// One axis of the array with the length of its boxes.
struct BoxAxis {
  int64_t size, stride, boxes, length;
};

// About how many elements a kernel makes before they are fingerprinted: few enough to stay in L1.
constexpr int64_t kPiece = 4096;
// This many elements of any dtype, beginning at a multiple of this number, are whole words.
constexpr int64_t kWords = 8;

void store(const numerics::Fingerprint& sum, const Array& out) {
  out.as<int64_t>()[0] = static_cast<int64_t>(sum.lane[0]);
  out.as<int64_t>()[1] = static_cast<int64_t>(sum.lane[1]);
}

}  // namespace

Status run_box_sumsq(const OpCall& call) {
  const Array &x = call.in[0], &out = call.out[0];
  std::vector<BoxAxis> axes;
  for (size_t i = 0; i < x.shape().axes.size(); ++i) {
    const ir::Axis& a = x.shape().axes[i];
    const int64_t boxes = out.shape().has(a.name) ? out.shape().size_of(a.name) : 1;
    axes.push_back({a.size, x.view->strides[i], boxes, compile::box_length(call.attrs, a, boxes)});
  }
  // Trailing axes that no box cuts are one run of memory.
  int64_t run = 1;
  while (!axes.empty() && axes.back().boxes == 1) {
    run *= axes.back().size;
    axes.pop_back();
  }
  if (!axes.empty()) {  // the last cut axis: its box is a run too
    axes.back().stride = run;
  }
  call.pool.parallel_for(out.count(), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> low(axes.size()), high(axes.size()), index(axes.size());
    for (int64_t box = begin; box < end; ++box) {
      int64_t rest = box;
      bool empty = run == 0;
      for (size_t i = axes.size(); i-- > 0;) {
        const int64_t b = rest % axes[i].boxes;
        rest /= axes[i].boxes;
        low[i] = std::min(b * axes[i].length, axes[i].size);
        high[i] = std::min(low[i] + axes[i].length, axes[i].size);
        empty = empty || low[i] == high[i];
      }
      double lanes[kNormLanes] = {};
      int lane = 0;
      index = low;
      while (!empty) {
        int64_t at = 0;
        for (size_t i = 0; i < axes.size(); ++i) at += index[i] * axes[i].stride;
        const int64_t n = axes.empty() ? run : (high.back() - low.back()) * run;
        lane = add_squares(x.as<float>() + at, n, lanes, lane);
        size_t i = axes.size() < 2 ? 0 : axes.size() - 1;
        bool more = false;
        while (i-- > 0) {
          if (++index[i] < high[i]) {
            more = true;
            break;
          }
          index[i] = low[i];
        }
        if (!more) break;
      }
      out.as<double>()[box] = numerics::combine_stripes(lanes);
    }
  });
  return Status();
}

Status run_fingerprint(const OpCall& call) {
  ASSIGN_OR_RETURN(const FingerprintSum rows, FingerprintSum::make(call.in, call.attrs, call.isa));
  numerics::Fingerprint total;
  std::mutex mutex;
  // Long rows are shared out in pieces of whole words.
  const int64_t bytes = rows.element_bytes(), worth = int64_t{1} << 18;
  const int64_t piece = worth / bytes;
  const int64_t pieces = std::max<int64_t>(1, (rows.length() + piece - 1) / piece);
  call.pool.parallel_for(
      rows.rows() * pieces,
      [&](int64_t begin, int64_t end) {
        numerics::Fingerprint sum;
        for (int64_t i = begin; i < end; ++i) {
          const int64_t start = i % pieces * piece;
          rows.add(sum, i / pieces, start, std::min(piece, rows.length() - start));
        }
        const std::lock_guard<std::mutex> lock(mutex);
        total += sum;
      },
      std::max<int64_t>(1, worth / std::max<int64_t>(1, std::min(piece, rows.length()) * bytes)));
  store(total, call.out[0]);
  return Status();
}

Status run_with_fingerprints(const compile::Step& step, machine::FunctionRef<void(int64_t, int64_t)> kernel,
                             std::span<const Array> operands, std::span<const std::vector<Array>> in,
                             std::span<const std::vector<Array>> out, machine::ThreadPool& pool,
                             machine::Isa isa) {
  std::vector<FingerprintSum> prints;
  for (size_t i = 0; i < step.epilogues.size(); ++i) {
    ASSIGN_OR_RETURN(FingerprintSum print, FingerprintSum::make(in[i], step.epilogues[i].attrs, isa));
    prints.push_back(std::move(print));
  }
  const int64_t row = step.out[0].shape.count() / step.extent;  // elements of one iteration of the kernel
  // Iterations of a piece, and the least that always are whole words.
  const int64_t piece = std::max<int64_t>(1, kPiece / row / kWords) * kWords;
  Array next;
  for (const Array& a : operands)
    if (a.view->dense() && a.count() == step.out[0].shape.count()) next = a;
  const int64_t next_bytes = next.data == nullptr ? 0 : ir::dtype_size(next.dtype());
  std::vector<numerics::Fingerprint> totals(prints.size());
  std::mutex mutex;
  pool.parallel_for(
      step.extent,
      [&](int64_t begin, int64_t end) {
        std::vector<numerics::Fingerprint> sums(prints.size());
        for (int64_t i = begin; i < end; i += piece) {
          const int64_t stop = std::min(end, i + piece);
          kernel(i, stop);
          // Meanwhile one operand of the next piece is prefetched; there is no time for more.
          const char* ahead = next.data == nullptr ? nullptr : next.data + stop * row * next_bytes;
          for (size_t k = 0; k < prints.size(); ++k)
            prints[k].add(sums[k], 0, i * row, (stop - i) * row, ahead);
        }
        const std::lock_guard<std::mutex> lock(mutex);
        for (size_t k = 0; k < prints.size(); ++k) totals[k] += sums[k];
      },
      (step.grain + kWords - 1) / kWords * kWords);
  for (size_t k = 0; k < prints.size(); ++k) store(totals[k], out[k][0]);
  return Status();
}

}  // namespace ostro::cpu
