// widen, narrow, first_from: conversions between arrays of bf16 and f32, and a search for values that are not
// finite. Pure functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "ostro/numerics/bf16.h"

namespace ostro::numerics {

// Converts the bytes of bf16 elements to those of as many f32, exactly. `out` has twice as many bytes as
// `stored`; both may have any alignment.
inline void widen(std::span<const std::byte> stored, std::span<std::byte> out) {
  for (size_t i = 0; i < stored.size() / sizeof(Bf16); ++i) {
    Bf16 x;
    std::memcpy(&x, stored.data() + i * sizeof(x), sizeof(x));
    const float wide = to_f32(x);
    std::memcpy(out.data() + i * sizeof(wide), &wide, sizeof(wide));
  }
}

// Converts f32 elements to the bytes of as many bf16, each by to_bf16. `out` has two bytes for each value and
// any alignment.
inline void narrow(std::span<const float> values, std::span<std::byte> out) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Bf16 x = to_bf16(values[i]);
    std::memcpy(out.data() + i * sizeof(x), &x, sizeof(x));
  }
}

// Returns the index of the first value whose bits without the sign are `least` or more; nothing if there is
// none. The default finds infinities and NaNs.
inline std::optional<size_t> first_from(std::span<const float> values, uint32_t least = 0x7f800000U) {
  const auto magnitude = [](float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffU; };
  uint32_t largest = 0;
  for (const float value : values) largest = std::max(largest, magnitude(value));
  if (largest < least) return std::nullopt;
  const auto at = std::find_if(values.begin(), values.end(), [&](float v) { return magnitude(v) >= least; });
  return static_cast<size_t>(at - values.begin());
}

}  // namespace ostro::numerics
