// dot_tc16: products of bf16 numbers by the rule of tensor cores (docs/spec/numerics.md, N23), one output at
// a time.
//
// `a(k)` and `b(k)` give element k < n of the operands, Bf16 or a float that bf16 holds. All arithmetic is on
// integers: the functions are pure, and depend on no floating-point environment.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "ostro/numerics/bf16.h"

namespace ostro::numerics {

inline constexpr int kTc16Group = 16;     // products of a step
inline constexpr int kTc16KeptBits = 25;  // below the largest exponent
inline constexpr int kTc16LeastExponent = -133;

// The addends of one step: up to 16 products, and the sum so far.
class Tc16Step {
 public:
  void add_product(uint32_t a, uint32_t b);  // bits of f32 values that bf16 holds
  void add(uint32_t c);                      // bits of an f32
  float result() const;

 private:
  // The bits of an f32: ±significand * 2^(exponent - 23), if it is finite.
  struct Number {
    explicit Number(uint32_t bits)
        : negative(bits >> 31 != 0),
          field(static_cast<int>(bits >> 23 & 255)),
          significand(field == 0 ? bits & 0x7fffffu : (bits & 0x7fffffu) | 0x800000u),
          exponent(std::max(field, 1) - 127) {}
    bool infinite() const { return field == 255 && significand == 0x800000u; }
    bool nan() const { return field == 255 && significand != 0x800000u; }
    bool negative;
    int field;
    int64_t significand;
    int exponent;
  };
  // significand * 2^(exponent - fraction); the exponent is what counts for the largest.
  struct Addend {
    int64_t significand;
    int exponent, fraction;
  };

  void put(bool negative, int64_t magnitude, int exponent, int fraction) {
    if (magnitude != 0) addends_[count_++] = {negative ? -magnitude : magnitude, exponent, fraction};
  }
  void put_infinity(bool negative) { (negative ? minus_infinity_ : plus_infinity_) = true; }
  static float rounded(int64_t sum, int unit);

  std::array<Addend, kTc16Group + 1> addends_ = {};
  size_t count_ = 0;
  bool nan_ = false, plus_infinity_ = false, minus_infinity_ = false;
};

inline void Tc16Step::add_product(uint32_t a, uint32_t b) {
  const Number x(a), y(b);
  const bool negative = x.negative != y.negative;
  if (x.nan() || y.nan()) {
    nan_ = true;
  } else if (x.infinite() || y.infinite()) {
    if (x.significand == 0 || y.significand == 0)
      nan_ = true;
    else
      put_infinity(negative);
  } else {
    put(negative, (x.significand >> 16) * (y.significand >> 16), x.exponent + y.exponent, 14);
  }
}

inline void Tc16Step::add(uint32_t c) {
  const Number x(c);
  if (x.nan())
    nan_ = true;
  else if (x.infinite())
    put_infinity(x.negative);
  else
    put(x.negative, x.significand, x.exponent, 23);
}

inline float Tc16Step::result() const {
  if (nan_ || (plus_infinity_ && minus_infinity_)) return std::bit_cast<float>(0x7fffffffu);
  if (plus_infinity_) return std::bit_cast<float>(0x7f800000u);
  if (minus_infinity_) return std::bit_cast<float>(0xff800000u);
  int largest = kTc16LeastExponent;
  for (size_t i = 0; i < count_; ++i) largest = std::max(largest, addends_[i].exponent);
  const int unit = largest - kTc16KeptBits;  // what is added are multiples of 2^unit
  int64_t sum = 0;
  for (size_t i = 0; i < count_; ++i) {
    const Addend& x = addends_[i];
    const int left = x.exponent - x.fraction - unit;
    if (left >= 0)
      sum += x.significand * (int64_t{1} << left);
    else if (left > -62)
      sum += x.significand / (int64_t{1} << -left);  // C++ divides toward zero
  }
  return rounded(sum, unit);
}

// sum * 2^unit as an f32, cut toward zero.
inline float Tc16Step::rounded(int64_t sum, int unit) {
  if (sum == 0) return 0.0f;
  const auto magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  const int exponent = std::bit_width(magnitude) - 1 + unit;
  const uint32_t sign = sum < 0 ? 0x80000000u : 0;
  if (exponent > 127) return std::bit_cast<float>(sign | 0x7f800000u);
  const int drop = std::max(exponent, -126) - 23 - unit;  // bits below the last one of the result
  const uint64_t kept = drop >= 0 ? magnitude >> drop : magnitude << -drop;
  if (kept == 0) return 0.0f;
  // The leading bit of `kept` adds 1 to the exponent field, or is missing in a denormal.
  const uint32_t field = exponent < -126 ? 0 : static_cast<uint32_t>(exponent + 126);
  return std::bit_cast<float>(sign | ((field << 23) + static_cast<uint32_t>(kept)));
}

template <typename A, typename B>
float dot_tc16(int64_t n, A&& a, B&& b) {
  float c = 0.0f;
  for (int64_t group = 0; group < n; group += kTc16Group) {
    Tc16Step step;
    for (int64_t k = group; k < std::min<int64_t>(n, group + kTc16Group); ++k)
      step.add_product(std::bit_cast<uint32_t>(widen(a(k))), std::bit_cast<uint32_t>(widen(b(k))));
    step.add(std::bit_cast<uint32_t>(c));
    c = step.result();
  }
  return c;
}

}  // namespace ostro::numerics
