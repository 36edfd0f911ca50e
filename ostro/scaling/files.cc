// The texts of fit.json and forecast.json.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/chain/canonical.h"
#include "ostro/scaling/scaling.h"

namespace ostro::scaling {
namespace {

using nlohmann::json;

json number_json(double value) { return chain::hex_float(value); }

json estimate_json(const Estimate& e) {
  return {{"value", number_json(e.value)}, {"low", number_json(e.low)}, {"high", number_json(e.high)}};
}

// Reads members; a text that is not as it was written throws what nlohmann throws, or the Error of a number.
double number_of(const json& from, const char* key) {
  const auto value = chain::parse_hex_float(from.at(key).get<std::string>());
  if (!value.ok()) throw json::other_error::create(500, value.error().message(), &from);
  return *value;
}

Estimate estimate_of(const json& from, const char* key) {
  const json& e = from.at(key);
  return {number_of(e, "value"), number_of(e, "low"), number_of(e, "high")};
}

template <typename T, typename Read>
Result<T> parsed(const std::string& text, const std::string& path, const Read& read) {
  try {
    return read(json::parse(text));
  } catch (const json::exception& e) {
    return corrupt(fmt::format("{}: is not what a step of a scaling plan writes: {}", path, e.what()));
  }
}

}  // namespace

std::string fit_text(const ScalingFit& fit) {
  json out = {{"counted", fit.counted},
              {"floor", estimate_json(fit.floor)},
              {"size_factor", estimate_json(fit.size_factor)},
              {"size_exponent", estimate_json(fit.size_exponent)},
              {"data_factor", estimate_json(fit.data_factor)},
              {"data_exponent", estimate_json(fit.data_exponent)},
              {"objective", number_json(fit.objective)},
              {"noise", number_json(fit.noise)},
              {"unknowns", fit.unknowns},
              {"flops_factor", number_json(fit.law.factor)},
              {"flops_exponent", number_json(fit.law.exponent)},
              {"flops_worst", number_json(fit.law.worst)},
              {"runs", json::array()}};
  for (const FittedRun& run : fit.runs)
    out["runs"].push_back({{"run", run.run},
                           {"evaluation", run.evaluation},
                           {"parameters", number_json(run.numbers.parameters)},
                           {"tokens", number_json(run.numbers.tokens)},
                           {"flops", number_json(run.numbers.flops)},
                           {"loss", number_json(run.numbers.loss)},
                           {"fitted", number_json(run.fitted)}});
  return out.dump(1) + "\n";
}

Result<ScalingFit> parse_fit(const std::string& text, const std::string& path) {
  return parsed<ScalingFit>(text, path, [](const json& from) {
    ScalingFit out;
    out.counted = from.at("counted").get<std::string>();
    out.floor = estimate_of(from, "floor");
    out.size_factor = estimate_of(from, "size_factor");
    out.size_exponent = estimate_of(from, "size_exponent");
    out.data_factor = estimate_of(from, "data_factor");
    out.data_exponent = estimate_of(from, "data_exponent");
    out.objective = number_of(from, "objective");
    out.noise = number_of(from, "noise");
    out.unknowns = from.at("unknowns").get<int>();
    out.law = {number_of(from, "flops_factor"), number_of(from, "flops_exponent"),
               number_of(from, "flops_worst")};
    for (const json& run : from.at("runs"))
      out.runs.push_back({run.at("run").get<std::string>(),
                          run.at("evaluation").get<std::string>(),
                          {number_of(run, "parameters"), number_of(run, "tokens"), number_of(run, "flops"),
                           number_of(run, "loss")},
                          number_of(run, "fitted")});
    return out;
  });
}

std::string forecast_text(const ScalingForecast& forecast) {
  json out = {{"parameters", number_json(forecast.parameters)},
              {"tokens", number_json(forecast.tokens)},
              {"flops", number_json(forecast.flops)},
              {"runs", forecast.runs},
              {"loss", estimate_json(forecast.loss)}};
  if (forecast.best_parameters) {
    out["best_parameters"] = estimate_json(*forecast.best_parameters);
    out["best_tokens"] = estimate_json(*forecast.best_tokens);
  }
  return out.dump(1) + "\n";
}

Result<ScalingForecast> parse_forecast(const std::string& text, const std::string& path) {
  return parsed<ScalingForecast>(text, path, [](const json& from) {
    ScalingForecast out{.parameters = number_of(from, "parameters"),
                        .tokens = number_of(from, "tokens"),
                        .flops = number_of(from, "flops"),
                        .runs = from.at("runs").get<int64_t>(),
                        .loss = estimate_of(from, "loss")};
    if (from.contains("best_parameters")) {
      out.best_parameters = estimate_of(from, "best_parameters");
      out.best_tokens = estimate_of(from, "best_tokens");
    }
    return out;
  });
}

}  // namespace ostro::scaling
