#include "ostro/numerics/threefry.h"

#include <cstring>

#include "ostro/numerics/coefficients.h"
#include "ostro/numerics/functions.h"

namespace ostro::numerics {
namespace {

// f32(sqrt(2) * erfinv(u))
float normal_from_uniform(float u) {
  return static_cast<float>(coefficients::kSqrt2 * erfinv_f64(static_cast<double>(u)));
}

}  // namespace

float normal_from_bits(uint32_t bits) {
  constexpr float kLow = -0x1.fffffep-1f;  // -1 + 2^-24, so that erfinv stays finite
  return normal_from_uniform(max_f32(kLow, uniform_from_bits(bits) * 2.0f + kLow));
}

float truncated_normal_from_bits(uint32_t bits) {
  using coefficients::kErf3Sigma;
  const float u = max_f32(-kErf3Sigma, uniform_from_bits(bits) * (2.0f * kErf3Sigma) + -kErf3Sigma);
  return min_f32(max_f32(normal_from_uniform(u), -3.0f), 3.0f);
}

void fill_random_bits(Key key, uint64_t first, std::span<uint32_t> out) {
  // A compiler's vector type rather than intrinsics: every target has it.
  using Words = uint32_t __attribute__((vector_size(32)));
  constexpr size_t kLanes = 8;
  size_t i = 0;
  for (; i + kLanes <= out.size(); i += kLanes) {
    Words x0, x1;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const uint64_t index = first + i + lane;
      x0[lane] = static_cast<uint32_t>(index >> 32);
      x1[lane] = static_cast<uint32_t>(index);
    }
    threefry_rounds(key, x0, x1);
    x0 ^= x1;
    std::memcpy(&out[i], &x0, sizeof x0);
  }
  for (; i < out.size(); ++i) out[i] = random_bits(key, first + i);
}

}  // namespace ostro::numerics
