// Bf16: the high half of an f32, as a storage type. Arithmetic widens it exactly (docs/spec/numerics.md, N1).
#pragma once

#include <bit>
#include <cstdint>

namespace ostro::numerics {

// Two bytes, without arithmetic.
struct Bf16 {
  uint16_t bits = 0;
  bool operator==(const Bf16&) const = default;  // of bits: -0 differs from +0, a NaN equals itself
};

// Returns the value of x as f32, exactly.
inline float to_f32(Bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

// Rounds to nearest even. A NaN keeps its high half, with the quiet bit set. Zeros and denormals give the
// zero of their sign. It uses only integer arithmetic, so MXCSR has no effect. The result is that of
// VCVTNEPS2BF16 on all 2^32 inputs.
inline Bf16 to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x0040u)};
  if (magnitude < 0x00800000u) return {static_cast<uint16_t>((bits >> 16) & 0x8000u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

// The f32 that has the value of x rounded to bf16.
inline float round_to_bf16(float x) { return to_f32(to_bf16(x)); }

// The f32 value of an element of either type, for generic code.
inline float widen(float x) { return x; }
inline float widen(Bf16 x) { return to_f32(x); }

}  // namespace ostro::numerics
