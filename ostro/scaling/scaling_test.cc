#include "ostro/scaling/scaling.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ostro/base/sha256.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/threefry.h"
#include "ostro/scaling/uncertainty.h"

namespace ostro::scaling {
namespace {

const Surface kTruth = {1.75, 40.0, 0.31, 300.0, 0.44};

// Three budgets of five sizes, with errors of this standard deviation. The draws are those of threefry.
std::vector<FittedRun> runs_with(double noise) {
  std::vector<FittedRun> out;
  const numerics::Key key = numerics::key_from_seed(7);
  double flops = 1e12;
  for (int budget = 0; budget < 3; ++budget, flops *= 4) {
    double parameters = 3e4 * (1 << budget);
    for (int size = 0; size < 5; ++size, parameters *= 1.75) {
      const double tokens = flops / 6 / parameters;
      const double error = noise * numerics::random_normal(key, out.size());
      out.push_back({"run-" + std::to_string(out.size()),
                     "eval",
                     {parameters, tokens, flops, kTruth.at(parameters, tokens) + error}});
    }
  }
  return out;
}

TEST_CASE("a surface without noise is found again, from no starting point") {
  const auto fit = fit_runs(runs_with(0), "all");
  REQUIRE_MESSAGE(fit.ok(), fit.error().message());
  CHECK(std::abs(fit->size_exponent.value - kTruth.size_exponent) < 1e-9);
  CHECK(std::abs(fit->data_exponent.value - kTruth.data_exponent) < 1e-9);
  CHECK(std::abs(fit->floor.value - kTruth.floor) < 1e-9);
  CHECK(std::abs(fit->size_factor.value / kTruth.size_factor - 1) < 1e-7);
  CHECK(fit->unknowns == 5);
  // The control: another exponent does not give these losses.
  Surface other = fit->surface();
  other.size_exponent += 1e-4;
  CHECK(std::abs(other.at(1e5, 1e7) - kTruth.at(1e5, 1e7)) > 1e-6);
}

TEST_CASE("the same runs give the same bytes on every machine, and another loss gives others") {
  const auto fit = fit_runs(runs_with(0.01), "all");
  REQUIRE(fit.ok());
  const auto forecast = foresee(*fit, {4e5, 2e8, 5e14, 0}, 2);
  REQUIRE_MESSAGE(forecast.ok(), forecast.error().message());
  const std::string bytes = fit_text(*fit) + forecast_text(*forecast);
  CHECK(sha256_hex(bytes) == "87ff935425c041f46e7360452c722a48d4870a67fddcfa482c68edb5531b5774");
  auto changed = runs_with(0.01);
  changed[3].numbers.loss = std::nextafter(changed[3].numbers.loss, 9.0);
  CHECK(fit_text(*fit_runs(changed, "all")) != fit_text(*fit));
  // What is written is read again.
  const auto again = parse_fit(fit_text(*fit), "fit.json");
  REQUIRE(again.ok());
  CHECK(fit_text(*again) == fit_text(*fit));
  const auto foreseen = parse_forecast(forecast_text(*forecast), "forecast.json");
  REQUIRE(foreseen.ok());
  CHECK(forecast_text(*foreseen) == forecast_text(*forecast));
  CHECK(parse_fit("{}", "fit.json").error().message().starts_with("fit.json: is not what a step"));
  CHECK_FALSE(parse_forecast(R"({"parameters": "1"})", "f").ok());
}

// Losses that say nothing of size and tokens: the search goes on in hundreds of small steps, each lower.
TEST_CASE("a search of many small steps ends") {
  const numerics::HostArithmetic arithmetic;
  const numerics::Key key = numerics::key_from_seed(985);
  std::vector<ScalingRun> runs;
  std::vector<double> losses;
  for (const double flops : {1e10, 2e10})
    for (const double parameters : {1e4, 3e4, 9e4}) {
      losses.push_back(5.5 + 0.05 * numerics::random_normal(key, losses.size()));
      runs.push_back({parameters, flops / 6 / parameters, flops, losses.back()});
    }
  const SurfaceFit fit = SurfaceSearch(runs).fit(losses);
  double mean = 0, squares = 0;
  for (const double loss : losses) mean += loss / 6;
  for (const double loss : losses) squares += (loss - mean) * (loss - mean);
  CHECK(fit.objective > 0);
  CHECK(fit.objective < squares);
}

TEST_CASE("intervals hold the truth, and grow with the noise") {
  const auto fit = fit_runs(runs_with(0.01), "all"), wide = fit_runs(runs_with(0.05), "all");
  REQUIRE(fit.ok());
  REQUIRE(wide.ok());
  CHECK(fit->floor.low <= kTruth.floor);
  CHECK(kTruth.floor <= fit->floor.high);
  CHECK(wide->floor.high - wide->floor.low > 2 * (fit->floor.high - fit->floor.low));
  CHECK(fit->noise > 0.003);
  CHECK(fit->noise < 0.03);
  const ScalingRun target = {4e5, 2e8, 5e14, 0};
  const auto one = foresee(*fit, target, 1), many = foresee(*fit, target, 16);
  REQUIRE(one.ok());
  CHECK(one->loss.low < one->loss.value);
  CHECK(many->loss.high - many->loss.low < one->loss.high - one->loss.low);
}

TEST_CASE("the best size for a budget is where the loss is lowest") {
  const auto fit = fit_runs(runs_with(0), "all");
  REQUIRE(fit.ok());
  CHECK(std::abs(fit->law.exponent - 1) < 1e-9);
  CHECK(std::abs(fit->law.factor / 6 - 1) < 1e-9);
  const auto best = optimum(fit->surface(), fit->law, 1e14);
  REQUIRE(best.has_value());
  const auto loss_at = [&](double parameters) {
    return kTruth.at(parameters, 1e14 / fit->law.for_token(parameters));
  };
  CHECK(loss_at(best->parameters) < loss_at(best->parameters * 1.01));
  CHECK(loss_at(best->parameters) < loss_at(best->parameters / 1.01));
  CHECK_FALSE(optimum({1, 0, 0.3, 10, 0.3}, fit->law, 1e14).has_value());
}

TEST_CASE("a best size has the interval of the draws that have one, and is none where many have none") {
  const numerics::HostArithmetic arithmetic;
  const auto runs = runs_with(0.01);
  const auto fit = fit_runs(runs, "all");
  REQUIRE(fit.ok());
  const auto numbers = fit->numbers();
  std::vector<double> losses;
  for (const ScalingRun& run : numbers) losses.push_back(run.loss);
  SurfaceSearch search(numbers);
  const Uncertainty uncertainty(search, numbers, search.fit(losses));
  int64_t draw = 0;
  // Every 20th draw has no value: 949 of 999 are left, from 1 on without multiples of 20.
  const auto some = uncertainty.of_those(
      [&](const Surface&) {
        return ++draw % 20 == 0 ? std::nullopt : std::optional(static_cast<double>(draw));
      },
      0.9);
  REQUIRE(some.has_value());
  CHECK(some->low == 49);  // the 47th of 950; with the others in it, it would be 50
  draw = 0;
  CHECK_FALSE(
      uncertainty
          .of_those([&](const Surface&) { return ++draw % 5 == 0 ? std::nullopt : std::optional(1.0); }, 0.9)
          .has_value());
  // Losses without a trend: many draws say that size or tokens have no effect.
  auto flat = runs;
  const numerics::Key key = numerics::key_from_seed(3);
  for (size_t i = 0; i < flat.size(); ++i) flat[i].numbers.loss = 3 + 0.01 * numerics::random_normal(key, i);
  const auto flat_fit = fit_runs(flat, "all");
  REQUIRE(flat_fit.ok());
  const auto forecast = foresee(*flat_fit, {4e5, 2e8, 5e14, 0}, 1);
  REQUIRE(forecast.ok());
  CHECK_FALSE(forecast->best_parameters.has_value());
  CHECK(foresee(*fit, {4e5, 2e8, 5e14, 0}, 1)->best_parameters.has_value());
}

TEST_CASE("what cannot be fitted or foreseen is an error that says why") {
  auto runs = runs_with(0.01);
  runs[4].numbers.loss = std::nan("");
  CHECK(fit_runs(runs, "all").error().message().starts_with("run-4: diverged"));
  runs = runs_with(0.01);
  runs.resize(5);
  CHECK(fit_runs(runs, "all").error().message() ==
        "5 runs do not fit a surface of 5 unknowns; at least 6 are needed");
  runs = runs_with(0.01);
  for (FittedRun& run : runs) run.numbers.parameters = 1e5;
  CHECK(fit_runs(runs, "all")
            .error()
            .message()
            .starts_with("the 15 runs have 1 different numbers of parameters; at least 3"));
  // Four pairs of a size and tokens, each with five seeds.
  runs = runs_with(0.01);
  runs.resize(4);
  runs[3].numbers.tokens = runs[0].numbers.tokens;
  runs[3].numbers.parameters = runs[1].numbers.parameters;
  for (int seed = 1; seed < 5; ++seed)
    for (size_t i = 0; i < 4; ++i) runs.push_back(runs[i]);
  CHECK(fit_runs(runs, "all")
            .error()
            .message()
            .starts_with("the 20 runs have 4 different pairs of a size and a number of tokens"));
  CHECK(fit_runs(runs, "all", Numbers::kOfATrial).ok());
  // A trial may have one number of tokens and a target that takes no more; its files are read again.
  runs = runs_with(0.01);
  for (FittedRun& run : runs) run.numbers.tokens = 640;
  CHECK(fit_runs(runs, "all").error().message().find("1 different numbers of tokens") != std::string::npos);
  const auto trial = fit_runs(runs, "all", Numbers::kOfATrial);
  REQUIRE_MESSAGE(trial.ok(), trial.error().message());
  CHECK(parse_fit(fit_text(*trial), "fit.json").ok());
  const auto foreseen = foresee(*trial, {1e5, 640, 1e9, 0}, 1, Numbers::kOfATrial);
  REQUIRE_MESSAGE(foreseen.ok(), foreseen.error().message());
  CHECK(parse_forecast(forecast_text(*foreseen), "forecast.json").ok());
  const auto fit = fit_runs(runs_with(0.01), "all");
  REQUIRE(fit.ok());
  const auto smaller = foresee(*fit, {1e5, 1e7, 1e13, 0}, 1);
  REQUIRE_FALSE(smaller.ok());
  CHECK(smaller.error().message().find("a forecast is of a larger run") != std::string::npos);
}

TEST_CASE("no coefficient is negative, and what cannot help stays at 0") {
  const numerics::HostArithmetic arithmetic;
  const std::vector<double> ones = {1, 1, 1, 1}, up = {1, 2, 3, 4}, bent = {1, 4, 9, 16};
  NonnegativeSolver solver(4);
  const auto solve = [&](const std::vector<double>& y) { solver.solve({ones, up, bent}, y); };
  solve({6, 11, 18, 27});  // 3 + 2 x + x^2
  for (size_t i = 0; i < 3; ++i)
    CHECK(std::abs(solver.coefficients[i] - (3.0 - static_cast<double>(i))) < 1e-12);
  solve({4, 3, 2, 1});  // falls: only the mean is left
  CHECK(solver.coefficients == std::array<double, 3>{2.5, 0, 0});
  CHECK(std::abs(solver.objective - 5) < 1e-12);
  solver.solve({ones, ones, up}, std::vector<double>{1, 2, 3, 4});  // two columns that are the same
  CHECK(solver.objective < 1e-24);
  CHECK(solver.coefficients[2] == doctest::Approx(1));
}

}  // namespace
}  // namespace ostro::scaling
