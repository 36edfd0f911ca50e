#include "ostro/lab/record/interval.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ostro/sql/exact_sum.h"

namespace ostro::lab {

double student_t(int64_t degrees_of_freedom) {
  // clang-format off
  static constexpr double kTable[] = {
    12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139,
    2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922, 2.093024, 2.085963,
    2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831, 2.048407, 2.045230, 2.042272,
    2.039513, 2.036933, 2.034515, 2.032245, 2.030108, 2.028094, 2.026192, 2.024394, 2.022691, 2.021075,
    2.019541, 2.018082, 2.016692, 2.015368, 2.014103, 2.012896, 2.011741, 2.010635, 2.009575, 2.008559,
    2.007584, 2.006647, 2.005746, 2.004879, 2.004045, 2.003241, 2.002465, 2.001717, 2.000995, 2.000298,
    1.999624, 1.998972, 1.998341, 1.997730, 1.997138, 1.996564, 1.996008, 1.995469, 1.994945, 1.994437,
    1.993943, 1.993464, 1.992997, 1.992543, 1.992102, 1.991673, 1.991254, 1.990847, 1.990450, 1.990063,
    1.989686, 1.989319, 1.988960, 1.988610, 1.988268, 1.987934, 1.987608, 1.987290, 1.986979, 1.986675,
    1.986377, 1.986086, 1.985802, 1.985523, 1.985251, 1.984984, 1.984723, 1.984467, 1.984217, 1.983972};
  // clang-format on
  const auto last = static_cast<int64_t>(std::size(kTable));
  return kTable[std::clamp<int64_t>(degrees_of_freedom, 1, last) - 1];
}

Interval interval95(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  sql::ExactSum sum;
  for (const double value : values) sum.add(value);
  Interval out;
  out.mean = sum.rounded() / n;
  if (values.size() < 2) return out;
  sql::ExactSum squares;
  for (const double value : values) {
    const double away = value - out.mean;
    squares.add(away * away);
  }
  const double error = std::sqrt(squares.rounded() / (n - 1) / n);
  const double half = student_t(static_cast<int64_t>(values.size()) - 1) * error;
  out.low = out.mean - half;
  out.high = out.mean + half;
  return out;
}

}  // namespace ostro::lab
