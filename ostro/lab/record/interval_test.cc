#include "ostro/lab/record/interval.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace ostro::lab {
namespace {

// The chance that |t| is below a value: the closed form for whole degrees of freedom.
double within(double t, int degrees) {
  const double angle = std::atan(t / std::sqrt(degrees)), cosine = std::cos(angle);
  double term = degrees % 2 == 0 ? 1 : cosine, sum = degrees == 1 ? 0 : term;
  for (int k = degrees % 2 == 0 ? 1 : 2; k <= degrees - 3; k += 2) {
    term *= cosine * cosine * k / (k + 1);
    sum += term;
  }
  const double even = std::sin(angle) * sum;
  return degrees % 2 == 0 ? even : 2 / 3.14159265358979323846 * (angle + even);
}

TEST_CASE("the table of Student's t has its quantiles to six digits") {
  for (int degrees = 1; degrees <= 100; ++degrees) {
    INFO(degrees);
    CHECK(within(student_t(degrees) - 6e-7, degrees) < 0.95);
    CHECK(within(student_t(degrees) + 6e-7, degrees) > 0.95);
  }
  CHECK(student_t(101) == student_t(100));
}

TEST_CASE("an interval follows from exact sums") {
  const std::vector<double> three = {1e16, 1, -1e16};
  CHECK(interval95(three).mean == 1.0 / 3);
  const Interval some = interval95(std::vector<double>{1, 2, 4});
  CHECK(some.mean == 7.0 / 3);
  CHECK(some.high.value() - some.mean == doctest::Approx(4.302653 * std::sqrt(7.0 / 9)).epsilon(1e-12));
  CHECK_FALSE(interval95(std::vector<double>{5}).low.has_value());
  CHECK(interval95(std::vector<double>{2, 2}).low == 2.0);
}

}  // namespace
}  // namespace ostro::lab
