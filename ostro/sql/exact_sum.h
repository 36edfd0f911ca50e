// ExactSum: the sum of doubles, rounded once: as of exact numbers, so their order changes no bit. A value.
#pragma once

#include <array>
#include <cstdint>

namespace ostro::sql {

class ExactSum {
 public:
  // `value` must be finite. No partial sum overflows: there is room for 2^60 values of any size.
  void add(double value);
  // The exact sum rounded to nearest, ties to even; infinite if it is too large for a double.
  double rounded() const;

 private:
  // A number in two's complement, lowest words first, in units of the smallest double (2^-1074): 2098 bits
  // for every double, and more for the carries.
  std::array<uint64_t, 34> words_{};
};

}  // namespace ostro::sql
