// scale_of_block: the scale of a block of integers, by the bits of its largest magnitude
// (docs/spec/numerics.md, N20). Included by the kernel files.
#pragma once

#include <cstdint>

namespace ostro::kernels {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u, kSmallest = 0x00800000u;

inline uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

// The power of two that the block is divided by, and its inverse: by the largest magnitude's bits. Where all
// numbers are to be zero, the inverse is.
struct BlockScale {
  float scale, inverse;
};
inline BlockScale scale_of_block(uint32_t largest) {
  if (largest >= kInfinity) return {float_of(0x7fc00000u), 0.0f};
  if (largest < kSmallest) return {0.0f, 0.0f};
  const int field = static_cast<int>(largest >> 23);
  int e = field - 127 > -120 ? field - 127 : -120;
  if (float_of(largest) > 127.0f * float_of(static_cast<uint32_t>(e - 6 + 127) << 23)) ++e;
  return {float_of(static_cast<uint32_t>(e - 6 + 127) << 23),
          float_of(static_cast<uint32_t>(6 - e + 127) << 23)};
}

}  // namespace
}  // namespace ostro::kernels
