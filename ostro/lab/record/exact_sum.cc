#include "ostro/lab/record/exact_sum.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace ostro::lab {

void ExactSum::add(double x) {
  size_t kept = 0;
  for (double y : parts_) {
    if (std::fabs(x) < std::fabs(y)) std::swap(x, y);
    const double high = x + y, low = y - (high - x);
    if (low != 0) parts_[kept++] = low;
    x = high;
  }
  parts_.resize(kept);
  parts_.push_back(x);
}

double ExactSum::rounded() const {
  if (parts_.empty()) return 0;
  size_t n = parts_.size();
  double high = parts_[--n], low = 0;
  while (n > 0) {
    const double x = high, y = parts_[--n];
    high = x + y;
    low = y - (high - x);
    if (low != 0) break;
  }
  // Half a unit that the parts below make a little more than half: rounded away from even.
  if (n > 0 && ((low < 0 && parts_[n - 1] < 0) || (low > 0 && parts_[n - 1] > 0))) {
    const double twice = low * 2, x = high + twice;
    if (twice == x - high) high = x;
  }
  return high;
}

}  // namespace ostro::lab
