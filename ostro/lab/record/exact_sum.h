// ExactSum: the sum of doubles, rounded once: as of exact numbers, so their order changes no bit. A value.
#pragma once

#include <vector>

namespace ostro::lab {

class ExactSum {
 public:
  // `value` must be finite.
  void add(double value);
  // The exact sum rounded to nearest, ties to even; infinite if it is too large for a double.
  double rounded() const;

 private:
  // Numbers whose bits do not overlap, by rising size; their exact sum is that of all that was added.
  // J. R. Shewchuk, "Adaptive Precision Floating-Point Arithmetic" (1997), section 2.4.
  std::vector<double> parts_;
};

}  // namespace ostro::lab
