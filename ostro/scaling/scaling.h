// ScalingFit, ScalingForecast: what the steps fit and forecast of a plan give, and the files that hold it.
// Values; pure functions: the same runs give the same text on every machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/scaling/allocation.h"
#include "ostro/scaling/surface.h"

namespace ostro::scaling {

inline constexpr const char* kFitFile = "fit.json";
inline constexpr const char* kForecastFile = "forecast.json";

// A number with its interval, which holds the true one with the chance of 90 %.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

struct FittedRun {
  std::string run, evaluation;  // names of steps
  ScalingRun numbers;
  double fitted = 0;  // the loss that the surface has there
};

struct ScalingFit {
  std::string counted;  // what N counts: "all", "without_embeddings"
  std::vector<FittedRun> runs;
  Estimate floor, size_factor, size_exponent, data_factor, data_exponent;
  double objective = 0, noise = 0;  // sum of squared errors; standard deviation of a run
  int unknowns = 0;
  FlopsLaw law;

  Surface surface() const;
  std::vector<ScalingRun> numbers() const;
};

struct ScalingForecast {
  double parameters = 0, tokens = 0, flops = 0;  // of the run that is foreseen
  int64_t runs = 1;                              // whose mean loss is foreseen
  Estimate loss;
  // The size and the tokens that the same operations are best spent on, by the fit. Nothing where it has no
  // best size, or where more than a tenth of the drawn surfaces have none; the intervals are of the others.
  std::optional<Estimate> best_parameters, best_tokens;
};

// A trial (of a sanity run) has runs of few steps, whose tokens and operations may be equal: that is no error
// then.
enum class Numbers { kMustTell, kOfATrial };

// Fits the runs. Errors: fewer runs than unknowns; a loss that is no finite number; fewer than three sizes or
// three numbers of tokens, or fewer pairs of both than unknowns.
Result<ScalingFit> fit_runs(std::vector<FittedRun> runs, const std::string& counted,
                            Numbers numbers = Numbers::kMustTell);
// Foresees the mean loss of `runs` runs with these numbers. Error: they take no more than a run of the fit.
Result<ScalingForecast> foresee(const ScalingFit& fit, const ScalingRun& target, int64_t runs,
                                Numbers numbers = Numbers::kMustTell);

// "loss 3.21, with 90 % from 3.1 to 3.4, for 1e+06 parameters, ...": for people.
std::string forecast_sentence(const ScalingForecast& forecast);

// The content of the files, and its inverse. Errors: kCorrupt, with the path.
std::string fit_text(const ScalingFit& fit);
Result<ScalingFit> parse_fit(const std::string& text, const std::string& path);
std::string forecast_text(const ScalingForecast& forecast);
Result<ScalingForecast> parse_forecast(const std::string& text, const std::string& path);

}  // namespace ostro::scaling
