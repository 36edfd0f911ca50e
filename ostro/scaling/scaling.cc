#include "ostro/scaling/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ostro/numerics/fp_env.h"
#include "ostro/scaling/uncertainty.h"

namespace ostro::scaling {
namespace {

constexpr size_t kUnknowns = 5;  // E, A, a, B and b
constexpr size_t kLeastRuns = kUnknowns + 1;
constexpr size_t kLeastDifferent = 3;
constexpr double kLeastWithBest = 0.9;  // of the drawn surfaces, where a best size is given

Status check_runs(const std::vector<FittedRun>& runs, Numbers numbers) {
  if (runs.size() < kLeastRuns)
    return invalid_argument(fmt::format("{} runs do not fit a surface of {} unknowns; at least {} are needed",
                                        runs.size(), kUnknowns, kLeastRuns));
  std::set<double> sizes, tokens;
  std::set<std::pair<double, double>> pairs;
  for (const FittedRun& run : runs) {
    if (!std::isfinite(run.numbers.loss))
      return invalid_argument(
          fmt::format("{}: diverged: its loss on the held-out texts is {}. Leave its size out of the budget, "
                      "or lower its "
                      "learning rate",
                      run.run, run.numbers.loss));
    sizes.insert(run.numbers.parameters);
    tokens.insert(run.numbers.tokens);
    pairs.emplace(run.numbers.parameters, run.numbers.tokens);
  }
  const auto differ = [&](const std::set<double>& values, const char* what) -> Status {
    if (values.size() >= kLeastDifferent) return {};
    return invalid_argument(fmt::format(
        "the {} runs have {} different {}; at least {} are needed to tell how the loss follows from them",
        runs.size(), values.size(), what, kLeastDifferent));
  };
  RETURN_IF_ERROR(differ(sizes, "numbers of parameters"));
  if (numbers == Numbers::kOfATrial) return {};
  RETURN_IF_ERROR(differ(tokens, "numbers of tokens"));
  if (pairs.size() < kUnknowns)
    return invalid_argument(fmt::format(
        "the {} runs have {} different pairs of a size and a number of tokens, and the surface has {} "
        "unknowns; at least {} pairs are needed, whatever their seeds",
        runs.size(), pairs.size(), kUnknowns, kUnknowns));
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
    const auto of = [&](double Allocation::* member) -> std::optional<Estimate> {
      const auto interval = uncertainty.of_those(
          [&](const Surface& drawn) -> std::optional<double> {
            const auto own = optimum(drawn, fit.law, target.flops);
            return own ? std::optional((*own).*member) : std::nullopt;
          },
          kLeastWithBest);
      return interval ? std::optional(estimate((*best).*member, *interval)) : std::nullopt;
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

Result<ScalingFit> fit_runs(std::vector<FittedRun> runs, const std::string& counted, Numbers numbers) {
  RETURN_IF_ERROR(check_runs(runs, numbers));
  const numerics::HostArithmetic arithmetic;
  return fit_checked(std::move(runs), counted);
}

Result<ScalingForecast> foresee(const ScalingFit& fit, const ScalingRun& target, int64_t runs,
                                Numbers numbers) {
  for (const FittedRun& run : fit.runs)
    if (numbers == Numbers::kMustTell && target.flops <= run.numbers.flops)
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
