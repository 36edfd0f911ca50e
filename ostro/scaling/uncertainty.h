// Uncertainty: how far a fitted surface may lie from the true one: fits of losses that are drawn anew.
//
// Each draw gives every run the loss of the fitted surface and the error of a run that is drawn among all,
// with putting back, and fits again. Errors are made larger for what the fit has taken up (n runs, p
// unknowns: n / (n - p)) and, by Student's t, for how little n - p errors say of their spread.
// docs/notes/results.md has how often such intervals hold the truth. The draws are those of threefry with a
// fixed key, so the same runs give the same intervals on every machine. Values; pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "ostro/scaling/surface.h"

namespace ostro::scaling {

// An interval with the chance of 90 %.
struct Interval90 {
  double low = 0, high = 0;
};

class Uncertainty {
 public:
  // `fit` is the search's fit to the runs' losses, with fewer unknowns than runs.
  Uncertainty(SurfaceSearch& search, std::span<const ScalingRun> runs, const SurfaceFit& fit);

  // Of a number that follows from a surface.
  template <typename F>
  Interval90 of(const F& number) const {
    std::vector<double> values;
    for (const Surface& surface : draws_) values.push_back(number(surface));
    return quantiles(std::move(values));
  }
  // Of a number that not every surface has (nothing where it has none): over the drawn surfaces that have it,
  // if they are at least this share of all.
  template <typename F>
  std::optional<Interval90> of_those(const F& number, double least_share) const {
    std::vector<double> values;
    for (const Surface& surface : draws_)
      if (const std::optional<double> value = number(surface)) values.push_back(*value);
    if (static_cast<double>(values.size()) < least_share * static_cast<double>(draws_.size()))
      return std::nullopt;
    return quantiles(std::move(values));
  }
  // Of the mean loss of `runs` further runs of this size: the surface's error and that of the runs.
  Interval90 of_runs(const Surface& fitted, double parameters, double tokens, int64_t runs) const;

  // The standard deviation of a run's loss around the surface.
  double noise() const { return noise_; }

 private:
  static Interval90 quantiles(std::vector<double> values);

  std::vector<Surface> draws_;
  std::vector<double> errors_;  // of the runs, made larger
  double noise_ = 0;
};

}  // namespace ostro::scaling
