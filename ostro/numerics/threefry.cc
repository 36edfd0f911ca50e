#include "ostro/numerics/threefry.h"

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

}  // namespace ostro::numerics
