// Surface, SurfaceSearch: how the loss follows from the size of a model and the tokens it was trained on:
// L = E + A / N^a + B / D^b, fitted to finished runs.
//
// The fit minimises the sum of squared errors of the loss itself, not of its logarithm: then E, A and B
// follow in closed form, and what is left is a search over (a, b). That is done on a grid, and the lowest
// places of the grid are refined. There is no starting point to choose. All functions are those of
// numerics.md, in f64 and in a fixed order, so the same runs give the same bits on every machine. One thread
// uses a search.
#pragma once

#include <span>
#include <vector>

#include "ostro/scaling/nonnegative.h"

namespace ostro::scaling {

// A finished run.
struct ScalingRun {
  double parameters = 0;  // N
  double tokens = 0;      // D
  double flops = 0;       // that it took
  double loss = 0;
};

struct Surface {
  double floor = 0;                           // E: what no size and no amount of data takes away
  double size_factor = 0, size_exponent = 0;  // A, a
  double data_factor = 0, data_exponent = 0;  // B, b
  double at(double parameters, double tokens) const;
};

struct SurfaceFit {
  Surface surface;
  double objective = 0;           // the sum of squared errors
  std::vector<double> residuals;  // loss - surface, by run
  int unknowns = 0;               // of the five, those that are not at 0 or without effect
};

// Both exponents lie between these.
inline constexpr double kLeastExponent = 0.02, kMostExponent = 3;

class SurfaceSearch {
 public:
  // Takes N and D of the runs, which are above 0. Where fewer than three N or D differ, several surfaces fit
  // them as well, and the fit is one of these.
  explicit SurfaceSearch(std::span<const ScalingRun> runs);

  // The fit to these losses, one for each run.
  SurfaceFit fit(std::span<const double> losses);

 private:
  struct Place {
    double log_a = 0, log_b = 0;
  };
  // Solves for E, A and B at a place; solver_ has the solution. Returns the sum of squares.
  double solve(const Place& place, std::span<const double> losses);
  // Goes down from a place, by the method of Levenberg and Marquardt on what the linear part leaves.
  double refine(Place& place, std::span<const double> losses);
  std::vector<Place> low_places(std::span<const double> losses);
  void fill(double exponent, const std::vector<double>& logs, std::vector<double>& column) const;

  std::vector<double> size_logs_, data_logs_;  // ln N and ln D, less their means
  double size_mean_ = 0, data_mean_ = 0;
  std::vector<double> ones_, size_column_, data_column_, size_slope_, data_slope_;
  std::vector<std::vector<double>> size_grid_, data_grid_;  // the columns on the grid of exponents
  NonnegativeSolver solver_;
};

}  // namespace ostro::scaling
