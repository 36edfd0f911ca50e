// interval95: mean and 95 % interval of some values by Student's t, the same bits on every machine: exact
// sums (sql::ExactSum), the four operations and the square root of doubles, and a table. A pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace ostro::lab {

struct Interval {
  double mean = 0;
  std::optional<double> low, high;  // from two values on
};

// mean = sum / n; low, high = mean -+ t * sqrt(v / n), where v is the sum of (x - mean)^2, each rounded, over
// n - 1. The sums are exact, and rounded once. `values` is not empty.
Interval interval95(std::span<const double> values);

// Student's t with 97.5 % below it, to six digits behind the point, for 1 to 100 degrees of freedom. For more
// it is that of 100, which makes intervals a little wider than they need be: by 1.3 % at most.
double student_t(int64_t degrees_of_freedom);

}  // namespace ostro::lab
