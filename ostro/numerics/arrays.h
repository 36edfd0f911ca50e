// Many elements of one type as another.
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

// Bytes of bf16 elements to those of as many f32, exactly; aligned in any way.
inline void widen(std::span<const std::byte> stored, std::span<std::byte> out) {
  for (size_t i = 0; i < stored.size() / sizeof(Bf16); ++i) {
    Bf16 x;
    std::memcpy(&x, stored.data() + i * sizeof(x), sizeof(x));
    const float wide = to_f32(x);
    std::memcpy(out.data() + i * sizeof(wide), &wide, sizeof(wide));
  }
}

// f32 elements to bytes of as many bf16, each as to_bf16 makes it; aligned in any way.
inline void narrow(std::span<const float> values, std::span<std::byte> out) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Bf16 x = to_bf16(values[i]);
    std::memcpy(out.data() + i * sizeof(x), &x, sizeof(x));
  }
}

// The index of the first value whose bits without the sign are `least` or more. The default: infinite or NaN.
inline std::optional<size_t> first_from(std::span<const float> values, uint32_t least = 0x7f800000U) {
  const auto magnitude = [](float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffU; };
  uint32_t largest = 0;
  for (const float value : values) largest = std::max(largest, magnitude(value));
  if (largest < least) return std::nullopt;
  const auto at = std::find_if(values.begin(), values.end(), [&](float v) { return magnitude(v) >= least; });
  return static_cast<size_t>(at - values.begin());
}

}  // namespace ostro::numerics
