// Slices, and products of them, of every kernel of N20's products and of every instruction set: the bits of
// docs/spec/numerics.md, N21 (numerics/int8_slices.h).
#include "ostro/kernels/attention/slices/slice_panels.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "ostro/machine/machine.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/int8_slices.h"
#include "ostro/numerics/threefry.h"
#include "ostro/products/int8_admission.h"
#include "ostro/products/kernels/dot8_kernel.h"

namespace ostro::kernels {
namespace {

using numerics::SlicedRow;

// Rows of n normal numbers; every eighth row is of zeros, tiny, at the edge of a scale, or not finite.
std::vector<float> slice_numbers(int64_t rows, int64_t n, uint32_t seed) {
  const numerics::Key key = numerics::key_from_seed(seed);
  std::vector<float> x(static_cast<size_t>(rows * n));
  for (size_t i = 0; i < x.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / n;
    const float v = numerics::normal_from_bits(numerics::random_bits(key, i));
    const float kinds[] = {v, v * 0x1p-120f, std::copysign(127.25f, v), 0.0f, v, v * 0x1p90f, v * 1e-3f, v};
    x[i] = kinds[row % 8];
  }
  if (rows > 7) x[static_cast<size_t>(7 * n)] = INFINITY;
  return x;
}

std::vector<SlicedRow> slices_of(const std::vector<float>& x, int64_t n) {
  std::vector<SlicedRow> rows;
  for (size_t at = 0; at < x.size(); at += static_cast<size_t>(n))
    rows.push_back(numerics::slice_row(n, [&](int64_t k) { return x[at + static_cast<size_t>(k)]; }));
  return rows;
}

bool same_number(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

std::vector<const SliceKernels*> all_slice_kernels() {
  std::vector<const SliceKernels*> all;
  for (const machine::Isa isa : {machine::Isa::kGeneric, machine::Isa::kAvx2, machine::Isa::kAvx512})
    if (machine::has_isa(isa)) all.push_back(&slice_kernels(isa));
  return all;
}

// Rows of slices, high ones first, with +0 behind them, as SliceOperands packs them for `side`.
std::vector<int8_t> in_order(const std::vector<SlicedRow>& rows, Side side) {
  std::vector<int8_t> all;
  for (const SlicedRow& row : rows)
    for (const auto* slice :
         {side == Side::kLeft ? &row.high : &row.low, side == Side::kLeft ? &row.low : &row.high})
      all.insert(all.end(), slice->begin(), slice->end());
  return all;
}

TEST_CASE("rows are cut as the definition says, and columns are their rows") {
  const numerics::HostArithmetic arithmetic;
  for (const SliceKernels* kernels : all_slice_kernels())
    for (const int64_t dims : {1, 16, 37, 128})
      for (const bool bf16 : {false, true})
        for (const Side side : {Side::kLeft, Side::kRight}) {
          const int64_t count = dims == 16 ? kSliceBlock : 19;
          std::vector<float> x = slice_numbers(count, dims, 3);
          std::vector<uint16_t> half;
          for (float& v : x) {
            half.push_back(numerics::to_bf16(v).bits);
            if (bf16) v = std::bit_cast<float>(uint32_t{half.back()} << 16);
          }
          const std::vector<SlicedRow> want = slices_of(x, dims);
          SlicedRows rows(dims);
          const void* source = bf16 ? static_cast<const void*>(half.data()) : x.data();
          rows.load(
              *kernels, source, bf16 ? machine::FloatType::kBf16 : machine::FloatType::kF32, count,
              [&](int64_t i) { return i * dims; }, side);
          const std::vector<int8_t> order = in_order(want, side);
          CHECK(std::memcmp(rows.rows(), order.data(), order.size()) == 0);
          for (int64_t i = 0; i < kSliceBlock; ++i)
            CHECK(same_number(rows.scales()[i], i < count ? want[static_cast<size_t>(i)].scale : 0.0f));
          for (const Side of : {Side::kLeft, Side::kRight}) {
            const int8_t* columns = rows.columns(of);
            bool equal = true;
            for (int64_t d = 0; d < dims; ++d)
              for (int64_t j = 0; j < kSliceBlock; ++j) {
                const bool there = j < count;
                const auto& row = want[static_cast<size_t>(there ? j : 0)];
                const auto at = static_cast<size_t>(d);
                const int8_t* high = columns + d * 2 * kSliceBlock + (of == Side::kLeft ? 0 : kSliceBlock);
                const int8_t* low = columns + d * 2 * kSliceBlock + (of == Side::kLeft ? kSliceBlock : 0);
                equal = equal && high[j] == (there ? row.high[at] : 0) && low[j] == (there ? row.low[at] : 0);
              }
            CHECK(equal);
          }
        }
}

// What a test packs and multiplies.
struct PackedSide {
  PackedSide(const SliceOperands& operands, Side side, const std::vector<SlicedRow>& rows)
      : memory(
            allocate_zeroed(static_cast<size_t>(operands.bytes(side, static_cast<int64_t>(rows.size()))))) {
    std::vector<float> scales;
    for (const SlicedRow& row : rows) scales.push_back(row.scale);
    operands.pack(side, in_order(rows, side).data(), scales.data(), static_cast<int64_t>(rows.size()),
                  memory.get());
  }
  AlignedBytes memory;
};

// The first difference of the products of all rows from the definition. `low`: false leaves out the slices g.
std::string product_difference(const DotInt8Kernel& kernel, int64_t n, bool go_on, bool low) {
  const SliceOperands operands(kernel, n);
  const int64_t mr = operands.width(Side::kLeft), nr = operands.width(Side::kRight), m = mr + 3,
                count = nr + 2;
  std::vector<SlicedRow> a = slices_of(slice_numbers(m, n, 5), n),
                         b = slices_of(slice_numbers(count, n, 6), n);
  const std::vector<SlicedRow> want_a = a;
  if (!low)
    for (SlicedRow& row : a) row.low.assign(row.low.size(), 0);
  const PackedSide left(operands, Side::kLeft, a), right(operands, Side::kRight, b);
  const AlignedBytes room = allocate_aligned(static_cast<size_t>(mr * nr) * sizeof(float));
  auto* c = reinterpret_cast<float*>(room.get());
  for (int64_t i0 = 0; i0 < m; i0 += mr)
    for (int64_t j0 = 0; j0 < count; j0 += nr) {
      for (int64_t i = 0; i < mr * nr; ++i) c[i] = 0.75f;
      operands.multiply(left.memory.get() + i0 / mr * operands.panel_bytes(Side::kLeft),
                        right.memory.get() + j0 / nr * operands.panel_bytes(Side::kRight), m - i0, c, go_on);
      for (int64_t i = i0; i < std::min(m, i0 + mr); ++i)
        for (int64_t j = j0; j < std::min(count, j0 + nr); ++j) {
          const SlicedRow &x = want_a[static_cast<size_t>(i)], &y = b[static_cast<size_t>(j)];
          const auto at = [](const std::vector<int8_t>& q) {
            return [&q](int64_t k) { return q[static_cast<size_t>(k)]; };
          };
          const float want = numerics::dot_slices(n, at(x.high), at(x.low), x.scale, at(y.high), at(y.low),
                                                  y.scale, go_on ? 0.75f : 0.0f);
          const float got = c[(i - i0) * nr + j - j0];
          if (!same_number(want, got)) return fmt::format("({}, {}): {:a} instead of {:a}", i, j, got, want);
        }
    }
  return {};
}

TEST_CASE("products of slices have the bits of the definition on every kernel of integer products") {
  const numerics::HostArithmetic arithmetic;
  for (const DotInt8Kernel* kernel : int8_kernels()) {
    if (kernel->enter != nullptr) kernel->enter();
    for (const int64_t n : {1, 36, 64, 128, 200, 1024})
      for (const bool go_on : {false, true}) {
        const std::string difference = product_difference(*kernel, n, go_on, true);
        CHECK_MESSAGE(difference.empty(), kernel->name, ", ", n, " numbers, ", difference);
      }
    CHECK_MESSAGE(!product_difference(*kernel, 64, true, false).empty(), kernel->name);  // the control
    if (kernel->leave != nullptr) kernel->leave();
  }
}

TEST_CASE("weights are cut and packed as the packer of each kernel would") {
  const numerics::HostArithmetic arithmetic;
  for (const DotInt8Kernel* kernel : int8_kernels())
    for (const SliceKernels* kernels : all_slice_kernels())
      for (const int64_t keys : {1, 77, 128}) {
        const SliceOperands operands(*kernel, kSliceBlock);
        const int64_t lanes = operands.width(Side::kRight);
        std::vector<float> w = slice_numbers(kSliceBlock, lanes, 8), factors = slice_numbers(keys, 1, 9);
        for (float& f : factors) f = f == 0 || std::isinf(f) ? 0.0f : std::ldexp(1.0f, std::ilogb(f));
        for (float& x : w) x = std::isinf(x) ? 1.0f : x;
        w[0] = NAN;  // lane 0 has the scale NaN
        std::vector<SlicedRow> rows;
        for (int64_t i = 0; i < lanes; ++i)
          rows.push_back(numerics::slice_row(kSliceBlock, [&](int64_t j) {
            return j < keys ? w[static_cast<size_t>(j * lanes + i)] * factors[static_cast<size_t>(j)] : 0.0f;
          }));
        const PackedSide want(operands, Side::kRight, rows);
        const AlignedBytes got = allocate_zeroed(static_cast<size_t>(operands.panel_bytes(Side::kRight)));
        kernels->lane_weights({.w = w.data(),
                               .factors = factors.data(),
                               .keys = keys,
                               .lanes = static_cast<int>(lanes),
                               .bytes = operands.packs_bytes(),
                               .flip = operands.zero_word(),
                               .out = got.get()});
        CHECK_MESSAGE(std::memcmp(want.memory.get(), got.get(),
                                  static_cast<size_t>(operands.panel_bytes(Side::kRight))) == 0,
                      kernel->name, ", ", keys, " keys");
      }
}

TEST_CASE("weights of keys are cut as the definition says") {
  const numerics::HostArithmetic arithmetic;
  constexpr int64_t kRows = 11;
  const std::vector<float> w = slice_numbers(kRows, kSliceBlock, 10);
  std::vector<float> factors(static_cast<size_t>(kSliceBlock), 0x1p-3f);
  for (size_t i = 100; i < factors.size(); ++i) factors[i] = 0x1p5f;
  for (const SliceKernels* kernels : all_slice_kernels()) {
    std::vector<int8_t> q(static_cast<size_t>(2 * kRows * kSliceBlock));
    std::vector<float> scales(static_cast<size_t>(kRows));
    kernels->row_weights(
        {.w = w.data(), .factors = factors.data(), .rows = kRows, .q = q.data(), .scales = scales.data()});
    std::vector<SlicedRow> want;
    for (int64_t row = 0; row < kRows; ++row) {
      want.push_back(numerics::slice_row(kSliceBlock, [&](int64_t i) {
        return w[static_cast<size_t>(row * kSliceBlock + i)] * factors[static_cast<size_t>(i)];
      }));
      CHECK(same_number(scales[static_cast<size_t>(row)], want.back().scale));
    }
    CHECK(q == in_order(want, Side::kLeft));
  }
}

}  // namespace
}  // namespace ostro::kernels
