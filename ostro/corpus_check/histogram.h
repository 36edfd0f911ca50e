// Histogram: a distribution in constant memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ostro::corpus_check {

// Counts values in bins. For sizes there are four bins between powers of 2 (0 and 1 have bins of their own);
// for shares the bins have equal width.
class Histogram {
 public:
  static Histogram sizes() { return Histogram(0, 0, 0); }
  // Values outside [low, high] are counted in the first or last bin.
  static Histogram linear(double low, double high, size_t bins) { return Histogram(low, high, bins); }

  void add(double value);

  int64_t count() const { return count_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  double min() const { return count_ == 0 ? 0 : min_; }
  double max() const { return count_ == 0 ? 0 : max_; }
  double sum() const { return sum_; }
  // The q-quantile, rounded up to the edge of its bin, but at most max().
  double quantile(double q) const;

  // The bins up to the last one that is not empty.
  const std::vector<int64_t>& bins() const { return bins_; }
  double lower_edge(size_t bin) const;

 private:
  Histogram(double low, double high, size_t bins) : low_(low), high_(high), linear_bins_(bins) {}
  size_t bin_of(double value) const;

  double low_, high_;
  size_t linear_bins_;  // 0: sizes
  std::vector<int64_t> bins_;
  int64_t count_ = 0;
  double sum_ = 0, min_ = 0, max_ = 0;
};

}  // namespace ostro::corpus_check
