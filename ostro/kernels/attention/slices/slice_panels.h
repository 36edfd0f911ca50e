// SliceOperands: operands of products on integers of two slices (docs/spec/numerics.md, N21) as panels of the
// kernels of N20's products. A row of n numbers has 2 n integers. Of the left operand the first block of a
// product is the high slices, the second the high and the low ones; of the right operand the second is the
// low and the high ones. So the product of N20 with these two blocks is that of N21.
//
// SlicedRows: up to 128 rows of an array, cut into slices, in this order, and the same by columns.
//
// Functions use only their arguments, so threads may call them at the same time. Callers set N0's
// floating-point environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/kernels/attention/slices/kernels/slice_kernels.h"
#include "ostro/machine/function_ref.h"
#include "ostro/machine/isa.h"
#include "ostro/machine/vector/float_type.h"

namespace ostro::kernels {

struct DotInt8Kernel;

enum class Side { kLeft, kRight };

class SliceOperands {
 public:
  // Rows of n numbers.
  SliceOperands(const DotInt8Kernel& kernel, int64_t n);

  int64_t width(Side side) const;                 // rows of a panel
  int64_t panel_bytes(Side side) const;           // a multiple of a cache line
  int64_t panels(Side side, int64_t rows) const;  // that `rows` rows fill
  int64_t bytes(Side side, int64_t rows) const { return panels(side, rows) * panel_bytes(side); }
  // Packs rows of 2 n integers, one after the other, with their scales.
  void pack(Side side, const int8_t* rows, const float* scales, int64_t count, std::byte* out) const;
  // c [width(left)][width(right)] = or += the product of two panels. `rows` of the left one are wanted.
  void multiply(const std::byte* left, const std::byte* right, int64_t rows, float* c, bool go_on) const;
  // What the kernel packs four zero bytes of a right operand as; `bytes`: it packs numbers as bytes.
  uint32_t zero_word() const { return zero_word_; }
  bool packs_bytes() const;

 private:
  const DotInt8Kernel* kernel_;
  int64_t n_;
  int32_t steps_[2];
  uint32_t zero_word_ = 0;
};

class SlicedRows {
 public:
  explicit SlicedRows(int64_t dims);

  // Cuts `count` rows, of which row i begins `at(i)` elements after `source`.
  void load(const SliceKernels& kernels, const void* source, machine::FloatType type, int64_t count,
            machine::FunctionRef<int64_t(int64_t)> at, Side side);
  const int8_t* rows() const { return rows_.data(); }     // [count][2 dims], for `side`
  const float* scales() const { return scales_.data(); }  // [kSliceBlock], +0 behind `count`
  // [dims][2 kSliceBlock], for an operand on `side`: integers of a number of all rows; zeros behind `count`.
  const int8_t* columns(Side side);

 private:
  int64_t dims_, count_ = 0;
  Side side_ = Side::kLeft;
  std::vector<int8_t> rows_, columns_;
  std::vector<float> scales_;
};

// The kernels between the products of an instruction set.
const SliceKernels& slice_kernels(machine::Isa isa);

}  // namespace ostro::kernels
