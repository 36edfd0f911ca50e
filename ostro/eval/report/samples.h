// Samples, estimate: figures of an evaluation as sums over documents, with their standard errors. Values and
// pure functions.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace ostro::eval {

// One figure of every document: its value is sum(numerators) / sum(denominators). For an accuracy the
// denominators are 1, for bits per byte the bytes.
struct Samples {
  std::vector<double> numerators, denominators;

  void add(double numerator, double denominator = 1) {
    numerators.push_back(numerator), denominators.push_back(denominator);
  }
};

struct Estimate {
  double value = 0;
  // The standard error of the value as a ratio of sums over independent documents; with denominators of 1 it
  // is the sample standard deviation / sqrt(n). Nothing for a single document.
  std::optional<double> standard_error = {};

  static constexpr double kNormal95 = 1.959963984540054;
  // The 95 % interval; there must be a standard error.
  double low() const { return value - kNormal95 * *standard_error; }
  double high() const { return value + kNormal95 * *standard_error; }
};

// The value of one corpus or task. All sums are in f64, in the order of the documents. The denominators must
// have a sum above 0.
Estimate estimate(const Samples& samples);
// The value over all documents of several corpora or tasks.
Estimate micro_average(std::span<const Samples* const> all);
// The mean of the values of several corpora or tasks, each of the same weight.
Estimate macro_average(std::span<const Samples* const> all);

// Sets `out` to b - a, document by document; its estimate is the paired difference. Returns false if a and b
// have different numbers of documents, or other denominators.
bool difference(const Samples& a, const Samples& b, Samples& out);

}  // namespace ostro::eval
