// What the optimizer and the chain need of whole arrays: sums of squares per box (docs/numerics.md N13) and
// fingerprints (N14). Dense operands; both near memory bandwidth.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "ostro/cpu/kernels/fingerprint_kernels.h"
#include "ostro/cpu/plan_call.h"
#include "ostro/numerics/fingerprint.h"
#include "ostro/numerics/sums.h"

namespace ostro::cpu {
namespace {

constexpr int kLanes = numerics::kStripes;

// Adds the squares of n floats to lanes that the next element joins at `lane`; returns the lane after the
// last.
int add_squares(const float* x, int64_t n, double* lanes, int lane) {
  int64_t i = 0;
  for (; lane != 0 && i < n; ++i) {
    const double v = x[i];
    lanes[lane] = lanes[lane] + v * v;
    lane = (lane + 1) % kLanes;
  }
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const double v = x[i + l];
      lanes[l] = lanes[l] + v * v;
    }
  for (; i < n; ++i) {
    const double v = x[i];
    lanes[lane] = lanes[lane] + v * v;
    lane = (lane + 1) % kLanes;
  }
  return lane;
}

// One axis of the array with the length of its boxes.
struct BoxAxis {
  int64_t size, stride, boxes, length;
};

int64_t integer(const Array& a) { return a.dtype() == ir::DType::i64 ? *a.as<int64_t>() : *a.as<int32_t>(); }

// Words of one row from `index` on.
void add_row(FingerprintWords add_words, numerics::Fingerprint& sum, uint64_t index, const char* row,
             int64_t bytes) {
  static constexpr FingerprintLane kMix[2] = {
      {numerics::kFingerprintLanes[0].index_factor, numerics::kFingerprintLanes[0].factor1,
       numerics::kFingerprintLanes[0].factor2},
      {numerics::kFingerprintLanes[1].index_factor, numerics::kFingerprintLanes[1].factor1,
       numerics::kFingerprintLanes[1].factor2}};
  const int64_t words = bytes / 8;
  add_words(kMix, index, row, words, sum.lane);
  if (bytes % 8 != 0) {
    uint64_t word = 0;
    std::memcpy(&word, row + 8 * words, static_cast<size_t>(bytes % 8));
    sum.add_word(index + static_cast<uint64_t>(words), word);
  }
}

}  // namespace

Status run_box_sumsq(const OpCall& call) {
  const Array &x = call.in[0], &out = call.out[0];
  std::vector<BoxAxis> axes;
  for (size_t i = 0; i < x.shape().axes.size(); ++i) {
    const ir::Axis& a = x.shape().axes[i];
    const int64_t boxes = out.shape().has(a.name) ? out.shape().size_of(a.name) : 1;
    axes.push_back({a.size, x.view->strides[i], boxes, std::max<int64_t>(1, (a.size + boxes - 1) / boxes)});
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
      double lanes[kLanes] = {};
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
  const Array& x = call.in[0];
  const int64_t bytes = ir::dtype_size(x.dtype());
  const size_t rank = x.shape().axes.size();
  const std::vector<int64_t>& global = call.attrs.ints("global_sizes");
  const int64_t length = rank == 0 ? 1 : x.shape().axes.back().size;
  const int64_t whole_length = rank == 0 ? 1 : global.back();
  const int64_t first = rank == 0 ? 0 : integer(call.in[rank]);
  const int64_t per_word = numerics::fingerprint_per_word(bytes);
  if (first % per_word != 0 || ((first + length) % per_word != 0 && first + length != whole_length))
    return invalid_argument(fmt::format(
        "fingerprint: {} is cut at {} .. {} of {}; cells of the last axis must be multiples of {}",
        x.shape().str(), first, first + length, whole_length, per_word));
  const int64_t rows = length == 0 ? 0 : x.count() / length;
  const int64_t words = numerics::fingerprint_words_per_row(whole_length, bytes);
  const FingerprintWords add_words =
      call.isa >= Isa::kAvx512 ? fingerprint_words_avx512 : fingerprint_words_generic;
  numerics::Fingerprint total;
  std::mutex mutex;
  // Long rows are shared out in pieces of whole words.
  const int64_t piece = std::max<int64_t>(per_word, (int64_t{1} << 18) / bytes);
  const int64_t pieces = std::max<int64_t>(1, (length + piece - 1) / piece);
  call.pool.parallel_for(
      rows * pieces,
      [&](int64_t begin, int64_t end) {
        numerics::Fingerprint sum;
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = i / pieces, start = i % pieces * piece;
          int64_t global_row = 0, rest = row, stride = 1;
          for (size_t k = rank == 0 ? 0 : rank - 1; k-- > 0;) {
            global_row += (rest % x.shape().axes[k].size + integer(call.in[k + 1])) * stride;
            rest /= x.shape().axes[k].size;
            stride *= global[k];
          }
          const int64_t n = std::min(piece, length - start);
          add_row(add_words, sum, static_cast<uint64_t>(global_row * words + (first + start) / per_word),
                  x.data + (row * length + start) * bytes, n * bytes);
        }
        const std::lock_guard<std::mutex> lock(mutex);
        total += sum;
      },
      std::max<int64_t>(1, (int64_t{1} << 18) / std::max<int64_t>(1, std::min(piece, length) * bytes)));
  call.out[0].as<int64_t>()[0] = static_cast<int64_t>(total.lane[0]);
  call.out[0].as<int64_t>()[1] = static_cast<int64_t>(total.lane[1]);
  return Status();
}

}  // namespace ostro::cpu
