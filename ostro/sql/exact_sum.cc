#include "ostro/sql/exact_sum.h"

#include <bit>
#include <cmath>
#include <cstddef>

namespace ostro::sql {
namespace {

constexpr int kSmallest = -1074;  // exponent of the smallest double
constexpr size_t kWord = 64, kMantissa = 53;

}  // namespace

void ExactSum::add(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const bool negative = (bits >> 63) != 0;
  const uint64_t exponent = (bits >> 52) & 0x7ff, fraction = bits & ((uint64_t{1} << 52) - 1);
  const uint64_t mantissa = exponent == 0 ? fraction : fraction | (uint64_t{1} << 52);
  const size_t shift = exponent == 0 ? 0 : exponent - 1, within = shift % kWord;
  const uint64_t low = mantissa << within, high = within == 0 ? 0 : mantissa >> (kWord - within);
  bool carry = false;
  for (size_t i = shift / kWord, k = 0; i < words_.size() && (k < 2 || carry); ++i, ++k) {
    const uint64_t part = k == 0 ? low : k == 1 ? high : 0, before = words_[i];
    words_[i] = negative ? before - part - (carry ? 1 : 0) : before + part + (carry ? 1 : 0);
    const uint64_t after = words_[i];
    carry =
        negative ? (carry ? after >= before : after > before) : (carry ? after <= before : after < before);
  }
}

double ExactSum::rounded() const {
  std::array<uint64_t, 34> size = words_;
  const bool negative = (size.back() >> 63) != 0;
  if (negative) {
    bool carry = true;
    for (uint64_t& word : size) {
      word = ~word + (carry ? 1 : 0);
      carry = carry && word == 0;
    }
  }
  size_t top = size.size();
  while (top > 0 && size[top - 1] == 0) --top;
  if (top == 0) return 0;
  const auto bit = [&](size_t at) { return (size[at / kWord] >> (at % kWord)) & 1; };
  const size_t highest = top * kWord - 1 - static_cast<size_t>(std::countl_zero(size[top - 1]));
  const size_t lowest = highest < kMantissa ? 0 : highest - kMantissa + 1;
  uint64_t mantissa = 0;
  for (size_t at = highest + 1; at-- > lowest;) mantissa = mantissa << 1 | bit(at);
  if (lowest > 0 && bit(lowest - 1) != 0) {
    bool more = false;  // than half a unit
    for (size_t at = 0; at < lowest - 1 && !more; ++at) more = bit(at) != 0;
    mantissa += more || (mantissa & 1) != 0 ? 1 : 0;
  }
  const double out = std::ldexp(static_cast<double>(mantissa), static_cast<int>(lowest) + kSmallest);
  return negative ? -out : out;
}

}  // namespace ostro::sql
