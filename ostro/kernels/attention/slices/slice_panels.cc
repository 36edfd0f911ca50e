#include "ostro/kernels/attention/slices/slice_panels.h"

#include <algorithm>
#include <cstring>

#include "ostro/base/check.h"
#include "ostro/products/kernels/dot8_kernel.h"

namespace ostro::kernels {
namespace {

int64_t up_to(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

using Bytes16 = uint8_t __attribute__((vector_size(16)));
constexpr int64_t kTile = 16;
constexpr int64_t kRowsAhead = 8;

// Transposes 16 x 16 bytes. Interleaving rows i and i + 8 moves the highest bit of a byte's (row, column) to
// the end, so that four times exchange row and column.
void transpose_bytes(Bytes16 (&x)[kTile]) {
  for (int round = 0; round < 4; ++round) {
    Bytes16 y[kTile];
    for (int64_t i = 0; i < kTile / 2; ++i) {
      const Bytes16 a = x[i], b = x[i + kTile / 2];
      y[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      y[2 * i + 1] =
          __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    std::memcpy(x, y, sizeof y);
  }
}

}  // namespace

const SliceKernels& slice_kernels(machine::Isa isa) {
  switch (isa) {
    case machine::Isa::kGeneric: return slices_generic();
    case machine::Isa::kAvx2: return slices_avx2();
    default: return slices_avx512();
  }
}

SliceOperands::SliceOperands(const DotInt8Kernel& kernel, int64_t n) : kernel_(&kernel), n_(n) {
  OSTRO_CHECK(kernel.nr == 16 || kernel.nr == 32, "the int8 kernel {} has panels of {} rows", kernel.name,
              kernel.nr);
  for (int i = 0; i < 2; ++i) steps_[i] = static_cast<int32_t>(up_to((i + 1) * n, kernel.k_unit));
  const int8_t zeros[4] = {};
  std::vector<uint32_t> packed(static_cast<size_t>(kernel.nr * kernel.k_unit));
  kernel.pack_b({.q = zeros, .stride = 0, .rows = 1, .count = 1, .steps = kernel.k_unit}, packed.data());
  zero_word_ = packed[0];
}

int64_t SliceOperands::width(Side side) const { return side == Side::kLeft ? kernel_->mr : kernel_->nr; }

bool SliceOperands::packs_bytes() const { return kernel_->b_bytes == 1; }

int64_t SliceOperands::panel_bytes(Side side) const {
  int64_t bytes = 0;
  for (const int32_t steps : steps_)
    bytes += side == Side::kLeft ? kernel_->a_block_bytes(steps) : kernel_->b_block_bytes(steps);
  return up_to(bytes, static_cast<int64_t>(kAlignment));
}

int64_t SliceOperands::panels(Side side, int64_t rows) const {
  return up_to(rows, width(side)) / width(side);
}

void SliceOperands::pack(Side side, const int8_t* rows, const float* scales, int64_t count,
                         std::byte* out) const {
  const int64_t wide = width(side);
  for (int64_t first = 0; first < count; first += wide, out += panel_bytes(side)) {
    const int64_t here = std::min(wide, count - first);
    std::byte* to = out;
    for (int block = 0; block < 2; ++block) {
      const int64_t steps = steps_[block];
      // The high slices alone are the first half of a left row and the second of a right one.
      const int64_t begin = block == 0 && side == Side::kRight ? n_ : 0;
      const Int8PanelSource source = {.q = rows + first * 2 * n_ + begin,
                                      .stride = 2 * n_,
                                      .rows = static_cast<int>(here),
                                      .count = (block + 1) * n_,
                                      .steps = steps};
      const bool left = side == Side::kLeft;
      auto* to_scales =
          reinterpret_cast<float*>(to + wide * steps * (left ? kernel_->a_bytes : kernel_->b_bytes));
      if (left)
        kernel_->pack_a(source, to, reinterpret_cast<int32_t*>(to_scales + wide));
      else
        kernel_->pack_b(source, to);
      const float times = left && block == 1 ? 1.0f / 128.0f : 1.0f;
      for (int64_t i = 0; i < wide; ++i) to_scales[i] = i < here ? scales[first + i] * times : 0.0f;
      to += left ? kernel_->a_block_bytes(steps) : kernel_->b_block_bytes(steps);
    }
  }
}

void SliceOperands::multiply(const std::byte* left, const std::byte* right, int64_t rows, float* c,
                             bool go_on) const {
  kernel_->multiply({.a = left,
                     .b = right,
                     .steps = steps_,
                     .blocks = 2,
                     .rows = static_cast<int>(std::min<int64_t>(rows, kernel_->mr)),
                     .c = c,
                     .first = !go_on});
}

SlicedRows::SlicedRows(int64_t dims)
    : dims_(dims),
      rows_(static_cast<size_t>(2 * dims * kSliceBlock + kTile)),  // a tile may be read beyond the last row
      columns_(static_cast<size_t>(2 * dims * kSliceBlock)),
      scales_(static_cast<size_t>(kSliceBlock)) {}

void SlicedRows::load(const SliceKernels& kernels, const void* source, machine::FloatType type, int64_t count,
                      machine::FunctionRef<int64_t(int64_t)> at, Side side) {
  const bool bf16 = type == machine::FloatType::kBf16;
  const int64_t bytes = bf16 ? 2 : 4;
  count_ = count;
  side_ = side;
  for (int64_t i = 0; i < kSliceBlock; ++i) {
    // Rows lie far from each other, so no processor fetches the next ones by itself.
    if (i + kRowsAhead < count)
      for (int64_t line = 0; line < dims_ * bytes; line += static_cast<int64_t>(kAlignment))
        __builtin_prefetch(static_cast<const std::byte*>(source) + at(i + kRowsAhead) * bytes + line);
    int8_t* row = rows_.data() + i * 2 * dims_;
    if (i >= count) {
      scales_[static_cast<size_t>(i)] = 0;
      continue;
    }
    const auto* x = static_cast<const std::byte*>(source) + at(i) * bytes;
    const int64_t high = side == Side::kLeft ? 0 : dims_;
    scales_[static_cast<size_t>(i)] = kernels.slice(x, bf16, dims_, row + high, row + dims_ - high);
  }
}

const int8_t* SlicedRows::columns(Side side) {
  for (int slice = 0; slice < 2; ++slice) {  // 0: high
    const int64_t from = (slice == 0) == (side_ == Side::kLeft) ? 0 : dims_;
    const int64_t to = (slice == 0) == (side == Side::kLeft) ? 0 : kSliceBlock;
    for (int64_t d0 = 0; d0 < dims_; d0 += kTile)
      for (int64_t j0 = 0; j0 < kSliceBlock; j0 += kTile) {
        Bytes16 tile[kTile] = {};
        for (int64_t j = 0; j < std::min(kTile, count_ - j0); ++j)
          std::memcpy(&tile[j], rows_.data() + (j0 + j) * 2 * dims_ + from + d0, kTile);
        transpose_bytes(tile);
        for (int64_t d = 0; d < std::min(kTile, dims_ - d0); ++d)
          std::memcpy(columns_.data() + (d0 + d) * 2 * kSliceBlock + to + j0, &tile[d], kTile);
      }
  }
  return columns_.data();
}

}  // namespace ostro::kernels
