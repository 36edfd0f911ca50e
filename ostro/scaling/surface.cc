#include "ostro/scaling/surface.h"

#include <algorithm>
#include <array>

#include "ostro/numerics/functions.h"

namespace ostro::scaling {
namespace {

using numerics::exp_f64;
using numerics::log_f64;

constexpr size_t kGrid = 24;    // exponents on either axis of the grid, in equal steps of the logarithm
constexpr size_t kRefined = 6;  // places of the grid from which the search goes on
constexpr int kMostRefinements = 400;  // of a refinement
constexpr double kEnough = 1e-14;      // a step of the logarithms of (a, b) that changes nothing any more
// Less damping has no effect on a step, and one that is 0 would never grow again.
constexpr double kLeastDamping = 1e-20;

double grid_log(size_t i) {
  const double low = log_f64(kLeastExponent), high = log_f64(kMostExponent);
  return low + (high - low) * static_cast<double>(i) / static_cast<double>(kGrid - 1);
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double clipped(double log_exponent) {
  return std::min(std::max(log_exponent, grid_log(0)), grid_log(kGrid - 1));
}

// Takes the mean out of the logarithms, so that the columns of the fit are of the size of 1.
double centre(std::vector<double>& logs) {
  double sum = 0;
  for (const double x : logs) sum += x;
  const double mean = sum / static_cast<double>(logs.size());
  for (double& x : logs) x -= mean;
  return mean;
}

}  // namespace

double Surface::at(double parameters, double tokens) const {
  return floor + size_factor * exp_f64(-size_exponent * log_f64(parameters)) +
         data_factor * exp_f64(-data_exponent * log_f64(tokens));
}

SurfaceSearch::SurfaceSearch(std::span<const ScalingRun> runs)
    : ones_(runs.size(), 1.0),
      size_column_(runs.size()),
      data_column_(runs.size()),
      size_slope_(runs.size()),
      data_slope_(runs.size()),
      size_grid_(kGrid, std::vector<double>(runs.size())),
      data_grid_(kGrid, std::vector<double>(runs.size())),
      solver_(runs.size()) {
  for (const ScalingRun& run : runs) {
    size_logs_.push_back(log_f64(run.parameters));
    data_logs_.push_back(log_f64(run.tokens));
  }
  size_mean_ = centre(size_logs_);
  data_mean_ = centre(data_logs_);
  for (size_t i = 0; i < kGrid; ++i) {
    fill(exp_f64(grid_log(i)), size_logs_, size_grid_[i]);
    fill(exp_f64(grid_log(i)), data_logs_, data_grid_[i]);
  }
}

void SurfaceSearch::fill(double exponent, const std::vector<double>& logs,
                         std::vector<double>& column) const {
  for (size_t i = 0; i < logs.size(); ++i) column[i] = exp_f64(-exponent * logs[i]);
}

double SurfaceSearch::solve(const Place& place, std::span<const double> losses) {
  fill(exp_f64(place.log_a), size_logs_, size_column_);
  fill(exp_f64(place.log_b), data_logs_, data_column_);
  solver_.solve({ones_, size_column_, data_column_}, losses);
  return solver_.objective;
}

std::vector<SurfaceSearch::Place> SurfaceSearch::low_places(std::span<const double> losses) {
  std::vector<double> values(kGrid * kGrid);
  for (size_t i = 0; i < kGrid; ++i)
    for (size_t j = 0; j < kGrid; ++j) {
      solver_.solve({ones_, size_grid_[i], data_grid_[j]}, losses);
      values[i * kGrid + j] = solver_.objective;
    }
  // Places that are not above any of their neighbours.
  std::vector<size_t> low;
  for (size_t i = 0; i < kGrid; ++i)
    for (size_t j = 0; j < kGrid; ++j) {
      bool is_low = true;
      for (size_t k = i == 0 ? 0 : i - 1; k <= std::min(i + 1, kGrid - 1); ++k)
        for (size_t l = j == 0 ? 0 : j - 1; l <= std::min(j + 1, kGrid - 1); ++l)
          is_low &= values[i * kGrid + j] <= values[k * kGrid + l];
      if (is_low) low.push_back(i * kGrid + j);
    }
  std::stable_sort(low.begin(), low.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  if (low.size() > kRefined) low.resize(kRefined);
  std::vector<Place> out;
  for (const size_t at : low) out.push_back({grid_log(at / kGrid), grid_log(at % kGrid)});
  return out;
}

double SurfaceSearch::refine(Place& place, std::span<const double> losses) {
  double value = solve(place, losses), damping = 1e-3;
  for (int step = 0; step < kMostRefinements && damping < 1e12; ++step) {
    // The derivatives of the residual by ln a and ln b, without what E, A and B can take up.
    const double a = exp_f64(place.log_a), b = exp_f64(place.log_b);
    for (size_t i = 0; i < losses.size(); ++i) {
      size_slope_[i] = a * solver_.coefficients[1] * size_logs_[i] * size_column_[i];
      data_slope_[i] = b * solver_.coefficients[2] * data_logs_[i] * data_column_[i];
    }
    solver_.project(size_slope_);
    solver_.project(data_slope_);
    double aa = dot(size_slope_, size_slope_), bb = dot(data_slope_, data_slope_),
           ab = dot(size_slope_, data_slope_);
    const double ra = dot(size_slope_, solver_.residual), rb = dot(data_slope_, solver_.residual);
    // An exponent at a bound beyond which the sum would be lower stays there, and the other one moves alone.
    const auto is_held = [](double at, double gradient) {
      return (at <= grid_log(0) && gradient > 0) || (at >= grid_log(kGrid - 1) && gradient < 0);
    };
    if (is_held(place.log_a, ra)) aa = ab = 0;
    if (is_held(place.log_b, rb)) bb = ab = 0;
    bool is_lower = false;
    for (; !is_lower && damping < 1e12; damping *= 8) {
      const double pa = aa * (1 + damping), pb = bb * (1 + damping), under = pa * pb - ab * ab;
      Place next = place;
      if (aa > 0 && bb > 0 && under > 0) {
        next.log_a = clipped(place.log_a - (pb * ra - ab * rb) / under);
        next.log_b = clipped(place.log_b - (pa * rb - ab * ra) / under);
      } else if (aa > 0) {
        next.log_a = clipped(place.log_a - ra / pa);
      } else if (bb > 0) {
        next.log_b = clipped(place.log_b - rb / pb);
      }
      const double moved = std::max(numerics::max_f64(next.log_a - place.log_a, place.log_a - next.log_a),
                                    numerics::max_f64(next.log_b - place.log_b, place.log_b - next.log_b));
      if (!(moved > kEnough)) break;
      const double found = solve(next, losses);
      if (!(found < value)) continue;
      value = found;
      place = next;
      is_lower = true;
      damping = std::max(damping / 64, kLeastDamping);
    }
    if (!is_lower) break;
  }
  return solve(place, losses);
}

SurfaceFit SurfaceSearch::fit(std::span<const double> losses) {
  Place best;
  bool has_best = false;
  double least = 0;
  for (Place place : low_places(losses)) {
    const double value = refine(place, losses);
    if (has_best && !(value < least)) continue;
    has_best = true;
    least = value;
    best = place;
  }
  SurfaceFit out;
  out.objective = solve(best, losses);
  out.residuals = solver_.residual;
  const auto& c = solver_.coefficients;
  Surface& s = out.surface;
  s.floor = c[0];
  s.size_exponent = exp_f64(best.log_a);
  s.data_exponent = exp_f64(best.log_b);
  s.size_factor = c[1] * exp_f64(s.size_exponent * size_mean_);
  s.data_factor = c[2] * exp_f64(s.data_exponent * data_mean_);
  out.unknowns = (c[0] > 0 ? 1 : 0) + (c[1] > 0 ? 2 : 0) + (c[2] > 0 ? 2 : 0);
  return out;
}

}  // namespace ostro::scaling
