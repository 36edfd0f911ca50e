// Fits runs by ostro/scaling for check_scaling.py: a line of JSON for each line of JSON.
//
//   {"runs": [[N, D, FLOPs, loss], ...]}                       gives the surface and its sum of squared
//   errors
//   {"runs": [...], "target": [N, D, FLOPs], "count": K}       gives the texts of fit.json and forecast.json,
//   too
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "ostro/chain/canonical.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/scaling/scaling.h"

namespace {

using namespace ostro;
using nlohmann::json;

json answer(const json& asked) {
  std::vector<scaling::FittedRun> runs;
  std::vector<scaling::ScalingRun> numbers;
  std::vector<double> losses;
  for (const json& run : asked["runs"]) {
    numbers.push_back({run[0], run[1], run[2], run[3]});
    losses.push_back(numbers.back().loss);
    runs.push_back({std::to_string(runs.size()), "", numbers.back()});
  }
  const numerics::HostArithmetic arithmetic;
  const scaling::SurfaceFit fit = scaling::SurfaceSearch(numbers).fit(losses);
  const scaling::Surface& s = fit.surface;
  json out = {{"objective", chain::hex_float(fit.objective)}, {"E", chain::hex_float(s.floor)},
              {"A", chain::hex_float(s.size_factor)},         {"a", chain::hex_float(s.size_exponent)},
              {"B", chain::hex_float(s.data_factor)},         {"b", chain::hex_float(s.data_exponent)}};
  if (!asked.contains("target")) return out;
  const auto whole = scaling::fit_runs(std::move(runs), "all");
  if (!whole.ok()) return {{"error", whole.error().message()}};
  const json& t = asked["target"];
  const auto forecast = scaling::foresee(*whole, {t[0], t[1], t[2], 0}, asked["count"]);
  if (!forecast.ok()) return {{"error", forecast.error().message()}};
  out["fit"] = scaling::fit_text(*whole);
  out["forecast"] = scaling::forecast_text(*forecast);
  return out;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("%s\n", answer(json::parse(line)).dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}
