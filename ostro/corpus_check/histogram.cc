#include "ostro/corpus_check/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ostro::corpus_check {

size_t Histogram::bin_of(double value) const {
  if (linear_bins_ > 0) {
    const double at = (value - low_) / (high_ - low_) * static_cast<double>(linear_bins_);
    return static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(linear_bins_ - 1)));
  }
  const auto v = static_cast<uint64_t>(std::max(value, 0.0));
  if (v < 4) return v;
  const int octave = std::bit_width(v) - 1;
  return static_cast<size_t>(octave - 1) * 4 + (v >> (octave - 2) & 3);
}

double Histogram::lower_edge(size_t bin) const {
  if (linear_bins_ > 0)
    return low_ + (high_ - low_) * static_cast<double>(bin) / static_cast<double>(linear_bins_);
  if (bin < 4) return static_cast<double>(bin);
  return std::ldexp(static_cast<double>(4 + bin % 4), static_cast<int>(bin / 4) - 1);
}

void Histogram::add(double value) {
  const size_t bin = bin_of(value);
  if (bin >= bins_.size()) bins_.resize(bin + 1, 0);
  ++bins_[bin];
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = count_ == 0 ? value : std::max(max_, value);
  ++count_;
  sum_ += value;
}

double Histogram::quantile(double q) const {
  int64_t seen = 0;
  for (size_t bin = 0; bin < bins_.size(); ++bin) {
    seen += bins_[bin];
    if (seen > 0 && static_cast<double>(seen) >= q * static_cast<double>(count_))
      return std::clamp(lower_edge(bin + 1), min_, max_);
  }
  return max();
}

}  // namespace ostro::corpus_check
