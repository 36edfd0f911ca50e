// Many bf16 elements as f32, exactly.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "ostro/numerics/bf16.h"

namespace ostro::numerics {

// Bytes of bf16 elements to those of as many f32, aligned in any way.
inline void widen(std::span<const std::byte> stored, std::span<std::byte> out) {
  for (size_t i = 0; i < stored.size() / sizeof(Bf16); ++i) {
    Bf16 x;
    std::memcpy(&x, stored.data() + i * sizeof(x), sizeof(x));
    const float wide = to_f32(x);
    std::memcpy(out.data() + i * sizeof(wide), &wide, sizeof(wide));
  }
}

}  // namespace ostro::numerics
