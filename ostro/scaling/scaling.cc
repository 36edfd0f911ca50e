#include "ostro/scaling/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ostro/numerics/fp_env.h"
#include "ostro/scaling/uncertainty.h"

namespace ostro::scaling {
namespace {

constexpr size_t kLeastRuns = 6;  // one more than E, A, a, B and b are
constexpr size_t kLeastDifferent = 3;

Status check_runs(const std::vector<FittedRun>& runs) {
  if (runs.size() < kLeastRuns)
    return invalid_argument(fmt::format("{} runs do not fit a surface of {} unknowns; at least {} are needed",
                                        runs.size(), kLeastRuns - 1, kLeastRuns));
  std::set<double> sizes, tokens;
  for (const FittedRun& run : runs) {
    if (!std::isfinite(run.numbers.loss))
      return invalid_argument(
          fmt::format("{}: diverged: its loss on the held-out texts is {}. Leave its size out of the budget, "
                      "or lower its "
                      "learning rate",
                      run.run, run.numbers.loss));
    sizes.insert(run.numbers.parameters);
    tokens.insert(run.numbers.tokens);
  }
  for (const auto& [what, values] :
       {std::pair{"numbers of parameters", &sizes}, {"numbers of tokens", &tokens}})
    if (values->size() < kLeastDifferent)
      return invalid_argument(fmt::format(
          "the {} runs have {} different {}; at least {} are needed to tell how the loss follows from them",
          runs.size(), values->size(), what, kLeastDifferent));
  return {};
}

Estimate estimate(double value, Interval90 interval) { return {value, interval.low, interval.high}; }

Result<ScalingFit> fit_checked(std::vector<FittedRun> runs, const std::string& counted) {
  ScalingFit out;
  out.counted = counted;
  out.runs = std::move(runs);
  const std::vector<ScalingRun> numbers = out.numbers();
  std::vector<double> losses;
  for (const ScalingRun& run : numbers) losses.push_back(run.loss);
  SurfaceSearch search(numbers);
  const SurfaceFit fit = search.fit(losses);
  const Surface& s = fit.surface;
  const Uncertainty uncertainty(search, numbers, fit);
  const auto of = [&](double Surface::* member) {
    return estimate(s.*member, uncertainty.of([&](const Surface& drawn) { return drawn.*member; }));
  };
  out.floor = of(&Surface::floor);
  out.size_factor = of(&Surface::size_factor);
  out.size_exponent = of(&Surface::size_exponent);
  out.data_factor = of(&Surface::data_factor);
  out.data_exponent = of(&Surface::data_exponent);
  out.objective = fit.objective;
  out.noise = uncertainty.noise();
  out.unknowns = fit.unknowns;
  out.law = flops_law(numbers);
  for (FittedRun& run : out.runs) run.fitted = s.at(run.numbers.parameters, run.numbers.tokens);
  return out;
}

ScalingForecast foresee_checked(const ScalingFit& fit, const ScalingRun& target, int64_t runs) {
  const std::vector<ScalingRun> numbers = fit.numbers();
  std::vector<double> losses;
  for (const ScalingRun& run : numbers) losses.push_back(run.loss);
  SurfaceSearch search(numbers);
  const Uncertainty uncertainty(search, numbers, search.fit(losses));
  const Surface surface = fit.surface();
  ScalingForecast out{
      .parameters = target.parameters, .tokens = target.tokens, .flops = target.flops, .runs = runs};
  out.loss = estimate(surface.at(target.parameters, target.tokens),
                      uncertainty.of_runs(surface, target.parameters, target.tokens, runs));
  if (const auto best = optimum(surface, fit.law, target.flops)) {
    const auto of = [&](double Allocation::* member) {
      return estimate((*best).*member, uncertainty.of([&](const Surface& drawn) {
        return optimum(drawn, fit.law, target.flops).value_or(*best).*member;
      }));
    };
    out.best_parameters = of(&Allocation::parameters);
    out.best_tokens = of(&Allocation::tokens);
  }
  return out;
}

}  // namespace

Surface ScalingFit::surface() const {
  return {floor.value, size_factor.value, size_exponent.value, data_factor.value, data_exponent.value};
}

std::vector<ScalingRun> ScalingFit::numbers() const {
  std::vector<ScalingRun> out;
  for (const FittedRun& run : runs) out.push_back(run.numbers);
  return out;
}

Result<ScalingFit> fit_runs(std::vector<FittedRun> runs, const std::string& counted) {
  RETURN_IF_ERROR(check_runs(runs));
  const numerics::HostArithmetic arithmetic;
  return fit_checked(std::move(runs), counted);
}

Result<ScalingForecast> foresee(const ScalingFit& fit, const ScalingRun& target, int64_t runs) {
  for (const FittedRun& run : fit.runs)
    if (target.flops <= run.numbers.flops)
      return invalid_argument(
          fmt::format("the run to be foreseen takes {:.4g} FLOPs, and {} of the fit took {:.4g}; a forecast "
                      "is of a larger run",
                      target.flops, run.run, run.numbers.flops));
  const numerics::HostArithmetic arithmetic;
  return foresee_checked(fit, target, runs);
}

std::string forecast_sentence(const ScalingForecast& forecast) {
  return fmt::format(
      "loss {:.5g}, with 90 % from {:.5g} to {:.5g}, for {:.4g} parameters, {:.4g} tokens and {:.4g} "
      "FLOPs",
      forecast.loss.value, forecast.loss.low, forecast.loss.high, forecast.parameters, forecast.tokens,
      forecast.flops);
}

}  // namespace ostro::scaling
