// The steps fit and forecast.
#include "ostro/scaling/scaling.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"

namespace ostro::lab {
namespace {

constexpr const char* kCounted[] = {"all", "without_embeddings"};
constexpr int64_t kMostRuns = 1000;  // whose mean loss a forecast foresees

scaling::ScalingRun numbers_of(const RunSize& size, const std::string& counted) {
  const int64_t parameters = counted == kCounted[0] ? size.parameters : size.without_embeddings;
  return {static_cast<double>(parameters), static_cast<double>(size.tokens), size.flops, 0};
}

scaling::Numbers numbers_in(const Plan& plan) {
  return plan.sanity ? scaling::Numbers::kOfATrial : scaling::Numbers::kMustTell;
}

Result<double> loss_of(const Work& work, const Step& evaluation) {
  const std::string path = io::join_path(work.made_by(evaluation).folder, "evaluation.json");
  ASSIGN_OR_RETURN(const std::string text, work.context.fs.read_file(path));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return corrupt(fmt::format("{}: is no evaluation", path));
  const std::string loss = json.value("loss", std::string());
  const auto value = chain::parse_hex_float(loss);
  if (!value.ok())
    return invalid_argument(fmt::format(
        "{}: diverged: its loss on the held-out texts is \"{}\". Leave its size out of the budget, or "
        "lower its learning rate",
        evaluation.inputs.at("of"), loss));
  return *value;
}

Result<std::string> write_output(const Work& work, const std::string& path, const std::string& text) {
  RETURN_IF_ERROR(io::write_file_atomically(work.context.fs, path, text));
  return sha256_hex(text);
}

}  // namespace

Result<std::string> make_fit(const Work& work, const std::string& folder) {
  const std::string& counted = text_of(work.step, "parameters");
  if (counted != kCounted[0] && counted != kCounted[1])
    return invalid_argument(
        fmt::format("parameters: \"{}\": use {} or {}", counted, kCounted[0], kCounted[1]));
  std::vector<scaling::FittedRun> runs;
  for (const auto& [unused, name] : work.step.inputs) {
    if (!work.made.contains(name)) continue;  // its run was stopped at a rung
    const Step& evaluation = *work.plan.find(name);
    const Step& training = *work.plan.find(evaluation.inputs.at("of"));
    ASSIGN_OR_RETURN(const RunSize size, run_size(work.of(training)));
    scaling::FittedRun run{training.name, name, numbers_of(size, counted)};
    ASSIGN_OR_RETURN(run.numbers.loss, loss_of(work, evaluation));
    runs.push_back(std::move(run));
  }
  ASSIGN_OR_RETURN(const scaling::ScalingFit fit,
                   scaling::fit_runs(std::move(runs), counted, numbers_in(work.plan)));
  return write_output(work, io::join_path(folder, scaling::kFitFile), scaling::fit_text(fit));
}

Result<std::string> make_forecast(const Work& work, const std::string& folder) {
  const std::string path = io::join_path(work.made_by(work.input("fit")).folder, scaling::kFitFile);
  ASSIGN_OR_RETURN(const std::string text, work.context.fs.read_file(path));
  ASSIGN_OR_RETURN(const scaling::ScalingFit fit, scaling::parse_fit(text, path));
  ASSIGN_OR_RETURN(const RunSize size, run_size(work));
  int64_t runs = 0;
  RETURN_IF_ERROR(config::read_value(*work.step.parameters.find("runs"), "runs", &runs));
  if (runs > kMostRuns)
    return invalid_argument(fmt::format("runs: {} are too many; use 1 to {}", runs, kMostRuns));
  ASSIGN_OR_RETURN(const scaling::ScalingForecast forecast,
                   scaling::foresee(fit, numbers_of(size, fit.counted), runs, numbers_in(work.plan)));
  return write_output(work, io::join_path(folder, scaling::kForecastFile), scaling::forecast_text(forecast));
}

}  // namespace ostro::lab
