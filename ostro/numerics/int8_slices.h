// SlicedRow, slice_row, dot_slices, dot_sliced, add_rows: products of rows on integers of two slices, one row
// or one block at a time (docs/spec/numerics.md, N21). The functions are pure, but need the floating-point
// environment of fp_env.h on the calling thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "ostro/numerics/functions.h"
#include "ostro/numerics/int8_blocks.h"

namespace ostro::numerics {

// The least exponent e of a row's scale: 2^(e - 6) / 128 is then no denormal.
inline constexpr int kLeastSliceExponent = -113;

// A row of numbers as integers: element k is (high[k] + low[k] / 128) * scale.
struct SlicedRow {
  std::vector<int8_t> high, low;
  float scale = 0;
};

// Returns the slices of a row of n elements; x(k) is element k, float or Bf16.
template <typename X>
SlicedRow slice_row(int64_t n, X&& x) {
  const BlockScale s = block_scale(n, x, kLeastSliceExponent);
  SlicedRow row;
  row.scale = s.scale;
  for (int64_t k = 0; k < n; ++k) {
    const float t = s.inverse == 0 ? 0.0f : widen(x(k)) * s.inverse;
    const float high = std::nearbyint(t);
    row.high.push_back(static_cast<int8_t>(high));
    row.low.push_back(static_cast<int8_t>(std::nearbyint((t - high) * 128.0f)));
  }
  return row;
}

// c and the product of two rows of n integers with the scales sa and sb; the elements are ah(k), al(k) and
// bh(k), bl(k). a is the left operand.
template <typename Ah, typename Al, typename Bh, typename Bl>
float dot_slices(int64_t n, Ah&& ah, Al&& al, float sa, Bh&& bh, Bl&& bl, float sb, float c) {
  int32_t i = 0, j = 0;
  for (int64_t k = 0; k < n; ++k) {
    i += int32_t{ah(k)} * int32_t{bh(k)};
    j += int32_t{ah(k)} * int32_t{bl(k)} + int32_t{al(k)} * int32_t{bh(k)};
  }
  c = fma_f32(static_cast<float>(i) * sb, sa, c);
  return fma_f32(static_cast<float>(j) * sb, sa / 128.0f, c);
}

// The product of two rows of equal length from +0; a is the left operand.
inline float dot_sliced(const SlicedRow& a, const SlicedRow& b) {
  const auto at = [](const std::vector<int8_t>& x) {
    return [&x](int64_t k) { return x[static_cast<size_t>(k)]; };
  };
  return dot_slices(static_cast<int64_t>(a.high.size()), at(a.high), at(a.low), a.scale, at(b.high),
                    at(b.low), b.scale, 0.0f);
}

// Which operand of the products of a sum is the left one: the rows, with the scale 1, or their factors.
enum class LeftOperand { kRows, kFactors };

// Adds one block of a sum of rows: to sum[d] the products of factors[j] and element d of rows[j]. A row that
// is nullptr is masked.
inline void add_rows(LeftOperand left, std::span<const float> factors, std::span<const SlicedRow* const> rows,
                     std::span<float> sum) {
  const auto n = static_cast<int64_t>(rows.size());
  std::vector<float> weights;
  for (size_t j = 0; j < rows.size(); ++j)
    weights.push_back(rows[j] == nullptr ? 0.0f : factors[j] * rows[j]->scale);
  const SlicedRow w = slice_row(n, [&](int64_t j) { return weights[static_cast<size_t>(j)]; });
  const auto high = [&](int64_t j) { return w.high[static_cast<size_t>(j)]; };
  const auto low = [&](int64_t j) { return w.low[static_cast<size_t>(j)]; };
  for (size_t d = 0; d < sum.size(); ++d) {
    const auto element = [&](const std::vector<int8_t> SlicedRow::* slice) {
      return [&rows, slice, d](int64_t j) {
        const SlicedRow* row = rows[static_cast<size_t>(j)];
        return row == nullptr ? int8_t{0} : (row->*slice)[d];
      };
    };
    const auto row_high = element(&SlicedRow::high), row_low = element(&SlicedRow::low);
    sum[d] = left == LeftOperand::kRows ? dot_slices(n, row_high, row_low, 1.0f, high, low, w.scale, sum[d])
                                        : dot_slices(n, high, low, w.scale, row_high, row_low, 1.0f, sum[d]);
  }
}

}  // namespace ostro::numerics
