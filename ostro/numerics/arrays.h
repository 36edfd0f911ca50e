// Many elements of one type as another.
#pragma once

#include <cstddef>
#include <cstring>
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

}  // namespace ostro::numerics
