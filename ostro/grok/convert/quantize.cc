#include "ostro/grok/convert/quantize.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace ostro::grok {
namespace {

using numerics::Bf16;

constexpr int kMost = 127;
constexpr size_t kTile = 16;  // columns: a cache line of a row

// The bf16 number `steps` above the positive `x`; at least the smallest.
float bf16_beside(float x, int steps) {
  const auto bits = static_cast<int64_t>(std::bit_cast<uint32_t>(x) >> 16) + steps;
  return std::bit_cast<float>(static_cast<uint32_t>(std::clamp<int64_t>(bits, 1, 0x7f7f)) << 16);
}

// One column of the rows.
class Column {
 public:
  explicit Column(std::span<const float> values) : values_(values) {
    for (const float x : values_) {
      most_ = std::max(most_, std::isfinite(x) ? std::abs(x) : INFINITY);
      is_bf16_ = is_bf16_ && numerics::round_to_bf16(x) == x;
    }
  }

  float most() const { return most_; }

  // Looks for the scale with which an import made the column: the largest magnitude is then n times the scale
  // for some n up to 127, exactly or rounded to bf16. Each n and the bf16 numbers beside most_ / n are tried,
  // and one counts if every value of the column comes back from it. Otherwise the scale is most_ / 127,
  // rounded up.
  float scale() const {
    if (most_ == 0) return 0;
    for (const bool rounded : {false, true}) {
      if (rounded && !is_bf16_) break;
      for (int n = kMost; n > 0; --n)
        for (const int steps : {0, 1, -1}) {
          const float scale = bf16_beside(most_ / static_cast<float>(n), steps);
          if (product(static_cast<float>(n), scale, rounded) == most_ && gives_back(scale, rounded))
            return scale;
        }
    }
    const float least = most_ / kMost, down = bf16_beside(least, 0);
    return down < least ? bf16_beside(down, 1) : down;
  }

  static float count(float x, float scale) {
    return scale == 0 ? 0 : std::clamp(std::nearbyint(x / scale), -float{kMost}, float{kMost});
  }

 private:
  static float product(float n, float scale, bool rounded) {
    const float x = n * scale;
    return rounded ? numerics::round_to_bf16(x) : x;
  }
  bool gives_back(float scale, bool rounded) const {
    return std::all_of(values_.begin(), values_.end(),
                       [&](float x) { return product(count(x, scale), scale, rounded) == x; });
  }

  std::span<const float> values_;
  float most_ = 0;
  bool is_bf16_ = true;
};

}  // namespace

Status quantize(std::span<const float> rows, int64_t columns, std::span<int8_t> out, std::span<Bf16> scales) {
  const auto width = static_cast<size_t>(columns), height = rows.size() / width;
  std::vector<float> tile(kTile * height);  // some columns, one after the other
  for (size_t first = 0; first < width; first += kTile) {
    const size_t count = std::min(kTile, width - first);
    for (size_t r = 0; r < height; ++r)
      for (size_t c = 0; c < count; ++c) tile[c * height + r] = rows[r * width + first + c];
    for (size_t c = 0; c < count; ++c) {
      const std::span<float> values = std::span(tile).subspan(c * height, height);
      const Column column(values);
      if (!std::isfinite(column.most()))
        return invalid_argument(
            fmt::format("a value of column {} is not finite: int8 cannot hold it", first + c));
      const float scale = column.scale();
      scales[first + c] = numerics::to_bf16(scale);
      for (float& x : values) x = Column::count(x, scale);
    }
    for (size_t r = 0; r < height; ++r)
      for (size_t c = 0; c < count; ++c)
        out[r * width + first + c] = static_cast<int8_t>(tile[c * height + r]);
  }
  return {};
}

}  // namespace ostro::grok
