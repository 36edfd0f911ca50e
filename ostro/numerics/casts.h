// flush_denormal, float_to_int: conversions between number types, docs/spec/numerics.md N1. (bf16 is in
// bf16.h.)
//
// Integers to floats and f64 to f32 are the plain C++ conversions: one rounding to nearest even, tiny results
// flushed (N0).
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>

namespace ostro::numerics {

// A denormal becomes the zero of its sign; any other value is unchanged. Arithmetic does this to its operands
// (N0); operations that only select values must call this function. It uses integer arithmetic, so no
// compiler can optimise it away.
inline float flush_denormal(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : x;
}
inline double flush_denormal(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  return (bits & 0x7ff0000000000000u) == 0 ? std::bit_cast<double>(bits & 0x8000000000000000u) : x;
}

// f32 or f64 to i32, u32 or i64: rounds towards zero. NaN gives 0. A value outside the range gives the
// nearest end of the range.
template <std::integral Int, std::floating_point Float>
Int float_to_int(Float x) {
  constexpr Float kBelow = static_cast<Float>(std::numeric_limits<Int>::min());
  // 2^31, 2^32 or 2^63: one above the maximum, and exact in Float.
  constexpr Float kAbove = static_cast<Float>(std::numeric_limits<Int>::max() / 2 + 1) * Float{2};
  if (x != x) return 0;
  if (x < kBelow) return std::numeric_limits<Int>::min();
  if (x >= kAbove) return std::numeric_limits<Int>::max();
  return static_cast<Int>(x);
}

}  // namespace ostro::numerics
