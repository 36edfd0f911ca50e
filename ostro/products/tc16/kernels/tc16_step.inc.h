// tc16_step: one step of the sum by the rule of tensor cores (docs/spec/numerics.md, N23) on integers, for
// one output. Included by the kernel files, each of which gets its own copy. Pure, and independent of MXCSR.
//
// a, b: the bits of 16 f32 values that bf16 holds each, element k at a[k * a_step]; zeros do not count. c:
// the sum so far.
#pragma once

#include <cstdint>
#include <cstring>

namespace ostro::kernels {
namespace {

constexpr int kTc16 = 16;  // products of a step

inline uint32_t tc16_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float tc16_float(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// magnitude * 2^unit toward zero.
inline float tc16_cut(bool negative, uint64_t magnitude, int unit) {
  if (magnitude == 0) return 0.0f;
  const int top = 63 - __builtin_clzll(magnitude), exponent = top + unit;
  const uint32_t sign = negative ? 0x80000000u : 0;
  if (exponent > 127) return tc16_float(sign | 0x7f800000u);
  const int least = exponent < -126 ? -149 : exponent - 23;  // the last bit's exponent
  const uint64_t kept = least >= unit ? magnitude >> (least - unit) : magnitude << (unit - least);
  if (kept == 0) return 0.0f;
  const uint32_t field = exponent < -126 ? 0 : static_cast<uint32_t>(exponent + 127) << 23;
  return tc16_float(sign | field | (static_cast<uint32_t>(kept) & 0x7fffffu));
}

[[maybe_unused]] inline float tc16_step(const uint32_t* a, int64_t a_step, const uint32_t* b, int64_t b_step,
                                        float c) {
  int32_t product[kTc16];  // with 14 bits behind the point of 2^exponent
  int exponent[kTc16];
  int largest = -133;
  bool nan = false, infinite[2] = {false, false};
  for (int k = 0; k < kTc16; ++k) {
    const uint32_t x = a[k * a_step], y = b[k * b_step], sign = (x ^ y) >> 31;
    const int fx = static_cast<int>(x >> 23 & 255), fy = static_cast<int>(y >> 23 & 255);
    const int mx = static_cast<int>(x >> 16 & 127) + (fx > 0 ? 128 : 0),
              my = static_cast<int>(y >> 16 & 127) + (fy > 0 ? 128 : 0);
    product[k] = sign != 0 ? -mx * my : mx * my;
    exponent[k] = (fx > 0 ? fx : 1) + (fy > 0 ? fy : 1) - 254;
    if (fx == 255 || fy == 255) {
      if ((fx == 255 && mx != 128) || (fy == 255 && my != 128) || product[k] == 0)
        nan = true;
      else
        infinite[sign] = true;
    } else if (product[k] != 0 && exponent[k] > largest) {
      largest = exponent[k];
    }
  }
  const uint32_t bits = tc16_bits(c);
  const int fc = static_cast<int>(bits >> 23 & 255), ec = (fc > 0 ? fc : 1) - 127;
  const int64_t mc = (bits & 0x7fffffu) + (fc > 0 ? 0x800000 : 0);
  if (fc == 255) {
    if (mc != 0x800000)
      nan = true;
    else
      infinite[bits >> 31] = true;
  } else if (mc != 0 && ec > largest) {
    largest = ec;
  }
  if (nan || (infinite[0] && infinite[1])) return tc16_float(0x7fffffffu);
  if (infinite[0] || infinite[1]) return tc16_float(infinite[1] ? 0xff800000u : 0x7f800000u);
  int64_t sum = 0;  // of multiples of 2^(largest - 25)
  for (int k = 0; k < kTc16; ++k) {
    if (product[k] == 0) continue;
    const int below = largest - exponent[k];
    if (below <= 11)
      sum += static_cast<int64_t>(product[k]) * (int64_t{1} << (11 - below));
    else if (below < 28)  // a product has at most 16 bits
      sum += product[k] / (1 << (below - 11));
  }
  if (mc != 0) {
    const int below = largest - ec;
    const int64_t addend = below <= 2 ? mc << (2 - below) : below < 27 ? mc >> (below - 2) : 0;
    sum += bits >> 31 != 0 ? -addend : addend;
  }
  return tc16_cut(sum < 0, static_cast<uint64_t>(sum < 0 ? -sum : sum), largest - 25);
}

}  // namespace
}  // namespace ostro::kernels
