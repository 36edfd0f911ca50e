// Products with an int8 matrix and its scales. Few rows: every thread takes strips of columns and reads their
// int8 elements once, where they lie. Many rows: the packers read panels that were dequantised just before.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ostro/numerics/bf16.h"
#include "ostro/products/gemm.h"
#include "ostro/products/gemm_block.h"
#include "ostro/products/kernels/int8_kernel.h"
#include "ostro/products/tile/gemm_kernel.h"

namespace ostro::kernels {
namespace {

// Columns of a strip: at most this many, and strips for each thread, so that all end at about the same time.
constexpr int64_t kStripColumns = 2048;
constexpr int64_t kStripsAThread = 4;
// The distance, in rows of B, between those that are read and those that are prefetched.
constexpr int64_t kStepsAhead = 32;
// The most different rows of scales: those of a strip stay in the caches.
constexpr int64_t kMostGroups = 64;
// Panels that are dequantised together, a group of steps at a time.
constexpr int64_t kPanelsTogether = 8;

thread_local Scratch strip_scratch;
thread_local Scratch rows_scratch;
thread_local Scratch dense_scratch;

int64_t padded_to(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

float element(GemmType type, const void* base, int64_t at) {
  if (type == GemmType::kF32) return static_cast<const float*>(base)[at];
  return numerics::to_f32(static_cast<const numerics::Bf16*>(base)[at]);
}

bool ascends_by_one(const std::vector<int64_t>& offsets) {
  for (size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] != offsets[i - 1] + 1) return false;
  return true;
}

// Where the runs of equal offsets begin.
std::vector<int64_t> run_starts(const std::vector<int64_t>& offsets) {
  std::vector<int64_t> starts;
  for (size_t i = 0; i < offsets.size(); ++i)
    if (i == 0 || offsets[i] != offsets[i - 1]) starts.push_back(static_cast<int64_t>(i));
  return starts;
}

// One call's part that all strips share.
struct Int8Rows {
  const GemmSpec* spec;
  const Int8Kernel* kernel;
  const GemmKernel* store;
  const GemmCall* call;
  const float* x;                     // [padded k][rows]
  std::vector<int64_t> scale_starts;  // the k at which each row of scales begins
  int64_t m, k;
};

// One strip of one call. Its rows of B are read where they lie; those of a strip narrower than a vector, and
// those that fill up the last steps, from a small buffer.
class Int8Strip {
 public:
  Int8Strip(const Int8Rows& rows, int64_t first, int64_t columns)
      : r_(rows), first_(first), columns_(columns), padded_(padded_to(columns, rows.kernel->columns)) {
    const auto groups = static_cast<int64_t>(r_.scale_starts.size());
    const int64_t floats = (3 * r_.m + 2 * (groups + 1)) * padded_;
    auto* memory = strip_scratch.get(floats * 4 + (kInt8Steps + 1) * padded_);
    std::memset(memory, 0, static_cast<size_t>(floats * 4 + (kInt8Steps + 1) * padded_));
    even_ = reinterpret_cast<float*>(memory);
    odd_ = even_ + r_.m * padded_;
    c_ = odd_ + r_.m * padded_;
    scales_ = c_ + r_.m * padded_;
    zeros_ = reinterpret_cast<int8_t*>(memory + floats * 4);
    narrow_ = zeros_ + padded_;
    read_scales(groups);
  }

  // Goes over k, kInt8Steps at a time. N6: one chain per output, in even_. N7: an even and an odd chain,
  // which are added to c_ after every 32 steps.
  void run() {
    const int64_t all = r_.m * padded_;
    const bool f32 = r_.spec->in == GemmType::kF32;
    Int8Block block = {.w = w_,
                       .ahead = ahead_,
                       .scales = at_,
                       .same_scales = false,
                       .larger = padded_,
                       .x = r_.x,
                       .rows = static_cast<int>(r_.m),
                       .columns = padded_,
                       .even = even_,
                       .odd = odd_,
                       .stride = padded_};
    const int64_t end = f32 ? r_.k : padded_to(r_.k, kInt8Group);
    for (int64_t k = 0; k < end; k += kInt8Steps, block.x += kInt8Steps * r_.m) {
      block.same_scales = find_rows(k);
      if (f32)
        r_.kernel->f32(block, static_cast<int>(std::min<int64_t>(kInt8Steps, end - k)));
      else
        (usual_ ? r_.kernel->bf16_usual : r_.kernel->bf16)(block);
      if (!f32 && (k + kInt8Steps) % kInt8Group == 0) r_.kernel->end_group(even_, odd_, c_, all);
    }
    store(f32 ? even_ : c_);
  }

 private:
  const int8_t* row_of(int64_t k) const {
    return static_cast<const int8_t*>(r_.call->b.data) + r_.spec->b_row[k] + r_.spec->b_col[first_];
  }

  void read_scales(int64_t groups) {
    for (int64_t i = 0; i < groups; ++i) {
      const int64_t from = r_.spec->s_row[r_.scale_starts[i]] + r_.spec->s_col[first_];
      for (int64_t j = 0; j < columns_; ++j) {
        const float scale = element(r_.spec->in, r_.call->b.scales, from + j);
        scales_[2 * i * padded_ + j] = scale;
        scales_[(2 * i + 1) * padded_ + j] = scale * kInt8Larger;
        usual_ = usual_ && int8_scale_is_usual(scale);
      }
    }
  }

  // Sets the rows of B from k on, the rows to prefetch and the rows of scales; returns whether all have the
  // same scales. Rows beyond the last k are zeros with scales of zero, which add +0, as N7 wants.
  bool find_rows(int64_t k) {
    const auto groups = static_cast<int64_t>(r_.scale_starts.size());
    for (int64_t i = 0; i < kInt8Steps; ++i) {
      if (k + i >= r_.k) {
        w_[i] = zeros_;
        at_[i] = scales_ + 2 * groups * padded_;
      } else {
        while (scale_row_ + 1 < groups && k + i >= r_.scale_starts[scale_row_ + 1]) ++scale_row_;
        w_[i] = row_of(k + i);
        at_[i] = scales_ + 2 * scale_row_ * padded_;
        if (columns_ < padded_) {
          std::memcpy(narrow_ + i * padded_, w_[i], static_cast<size_t>(columns_));
          w_[i] = narrow_ + i * padded_;
        }
      }
      ahead_[i] = row_of(std::min(k + kStepsAhead + i, r_.k - 1));
    }
    return at_[0] == at_[kInt8Steps - 1];
  }

  void store(const float* sums) const {
    for (int64_t row = 0; row < r_.m; ++row) {
      const int64_t at = r_.spec->c_row[row] + r_.spec->c_col[first_];
      const float* from = sums + row * padded_;
      if (r_.spec->out == GemmType::kF32)
        std::memcpy(static_cast<float*>(r_.call->c) + at, from, static_cast<size_t>(columns_) * 4);
      else
        r_.store->round_row(from, columns_, static_cast<uint16_t*>(r_.call->c) + at);
    }
  }

  const Int8Rows& r_;
  const int64_t first_, columns_, padded_;
  float *even_, *odd_, *c_, *scales_;
  int8_t *zeros_, *narrow_;
  const int8_t *w_[kInt8Steps], *ahead_[kInt8Steps];
  const float* at_[kInt8Steps];
  bool usual_ = true;
  int64_t scale_row_ = 0;
};

}  // namespace

bool Gemm::plan_few_int8() const {
  return spec_.int8_b && m() >= 1 && m() <= kInt8Rows && n() >= 1 && k() >= 1 &&
         spec_.segment_ends.size() == 1 && ascends_by_one(spec_.b_col) && ascends_by_one(spec_.c_col) &&
         ascends_by_one(spec_.s_col) && static_cast<int64_t>(run_starts(spec_.s_row).size()) <= kMostGroups;
}

bool Gemm::takes_few(GemmB b) const {
  for (const int64_t start : run_starts(spec_.s_row))
    for (int64_t j = 0; j < n(); ++j)
      if (!std::isfinite(element(spec_.in, b.scales, spec_.s_row[start] + spec_.s_col[j]))) return false;
  return true;
}

// Reads A of every call once, as f32 [k][m] with zeros up to a whole group of 32 k; then cuts the columns of
// all calls into strips, about kStripsAThread for each thread. Columns after the last whole vector are a
// strip of their own.
void Gemm::run_few_int8(machine::ThreadPool& pool, std::span<const GemmCall> calls) {
  if (calls.empty()) return;
  int64_t floats = 0, columns = 0;
  for (const GemmCall& call : calls) {
    floats += call.gemm->m() * padded_to(call.gemm->k(), kInt8Group);
    columns += call.gemm->n();
  }
  auto* x = reinterpret_cast<float*>(rows_scratch.get(floats * 4));
  struct Part {
    size_t call;
    int64_t first, columns;
  };
  std::vector<Int8Rows> rows;
  std::vector<Part> parts;
  for (const GemmCall& call : calls) {
    const Gemm& g = *call.gemm;
    const int64_t unit = g.int8_kernel_->columns;
    const int64_t width = std::clamp(padded_to(columns / (pool.threads() * kStripsAThread), unit), unit,
                                     padded_to(kStripColumns, unit));
    const int64_t padded = padded_to(g.k(), kInt8Group);
    for (int64_t k = 0; k < padded; ++k)
      for (int64_t i = 0; i < g.m(); ++i)
        x[k * g.m() + i] =
            k < g.k() ? element(g.spec_.in, call.a, g.spec_.batch[0].a + g.spec_.a_row[i] + g.spec_.a_col[k])
                      : 0.0f;
    const int64_t even = g.n() / unit * unit;  // the rest is a strip of its own
    for (int64_t first = 0; first < even; first += width)
      parts.push_back({rows.size(), first, std::min(width, even - first)});
    if (even < g.n()) parts.push_back({rows.size(), even, g.n() - even});
    rows.push_back({&g.spec_, g.int8_kernel_, g.kernel_, &call, x, run_starts(g.spec_.s_row), g.m(), g.k()});
    x += g.m() * padded;
  }
  pool.run_tiles(static_cast<int64_t>(parts.size()), [&](int64_t i) {
    const Part& part = parts[static_cast<size_t>(i)];
    Int8Strip(rows[part.call], part.first, part.columns).run();
  });
}

// Dequantises kPanelsTogether panels of 32 k at a time into a small buffer, with N1's rounding, and packs
// from there with the kernel's own packer.
void Gemm::pack_int8(const Operand& operand, const KBlock& block, int64_t begin, int64_t end, std::byte* out,
                     int64_t panel_stride) const {
  const bool f32 = spec_.in == GemmType::kF32;
  const auto entries = static_cast<int64_t>(operand.w_offsets.size());
  const int64_t most = kPanelsTogether * operand.width, size = f32 ? 4 : 2;
  auto* dense = dense_scratch.get(kInt8Group * most * size);
  std::vector<int64_t> columns(static_cast<size_t>(most)), steps(kInt8Group);
  const std::vector<int32_t> apart(kInt8Group, 1);
  for (int64_t j = 0; j < most; ++j) columns[j] = j;
  for (int64_t i = 0; i < kInt8Group; ++i) steps[i] = i * most;
  for (int64_t panel = begin; panel < end; panel += kPanelsTogether) {
    const int64_t last = std::min(end, panel + kPanelsTogether), first = panel * operand.width;
    const int64_t width = std::min(entries, last * operand.width) - first;
    for (int64_t k = 0; k < block.count; k += kInt8Group) {
      const int64_t count = std::min<int64_t>(kInt8Group, block.count - k);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = block.begin + k + i;
        const int8_t* w = static_cast<const int8_t*>(operand.base) + operand.k_offsets[row];
        for (int64_t j = 0; j < width; ++j) {
          const float scale = element(spec_.in, operand.scales, spec_.s_row[row] + spec_.s_col[first + j]);
          const float product = static_cast<float>(w[operand.w_offsets[first + j]]) * scale;
          if (f32)
            reinterpret_cast<float*>(dense)[i * most + j] = product;
          else
            reinterpret_cast<numerics::Bf16*>(dense)[i * most + j] = numerics::to_bf16(product);
        }
      }
      for (int64_t p = panel; p < last; ++p) {
        const int64_t at = (p - panel) * operand.width;
        operand.kernel_pack({.base = dense,
                             .w_offsets = columns.data() + at,
                             .width = static_cast<int>(std::min<int64_t>(operand.width, width - at)),
                             .w_contiguous = true,
                             .k_offsets = steps.data(),
                             .k_run = apart.data(),
                             .count = count},
                            out + (p - begin) * panel_stride + k * operand.k_bytes);
      }
    }
  }
}

}  // namespace ostro::kernels
