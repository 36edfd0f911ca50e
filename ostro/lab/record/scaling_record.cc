#include "ostro/lab/record/scaling_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ostro/io/files/path.h"
#include "ostro/lab/record/interval.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/functions.h"
#include "ostro/scaling/scaling.h"

namespace ostro::lab {
namespace {

constexpr int kCurvePoints = 41;
constexpr double kBeyond = 1.5;  // how far a curve goes beyond the runs, as a factor of N

std::string series_of(const scaling::FittedRun& run) { return run.run.substr(0, run.run.find('[')); }

// Points of a fit's curve for the mean operations of some runs.
std::vector<scaling::ScalingRun> curve(const scaling::ScalingFit& fit,
                                       const std::vector<scaling::ScalingRun>& runs) {
  double low = runs[0].parameters, high = low, flops = 0;
  for (const scaling::ScalingRun& run : runs) {
    low = std::min(low, run.parameters);
    high = std::max(high, run.parameters);
    flops += run.flops / static_cast<double>(runs.size());
  }
  const double from = numerics::log_f64(low / kBeyond), to = numerics::log_f64(high * kBeyond);
  const scaling::Surface surface = fit.surface();
  std::vector<scaling::ScalingRun> out;
  for (int i = 0; i < kCurvePoints; ++i) {
    const double parameters = numerics::exp_f64(from + (to - from) * i / (kCurvePoints - 1));
    const double tokens = flops / fit.law.for_token(parameters);
    out.push_back({parameters, tokens, flops, surface.at(parameters, tokens)});
  }
  return out;
}

// Nothing of a run that diverged.
Result<std::optional<double>> loss_of(const Database& record, const std::string& evaluation) {
  ASSIGN_OR_RETURN(const Rows rows, record.select("SELECT loss FROM evaluations WHERE name = " +
                                                  sql_literal(evaluation) + " ORDER BY step DESC LIMIT 1"));
  const auto* loss = std::get_if<double>(&rows.rows.at(0).at(0));
  return loss == nullptr ? std::nullopt : std::optional(*loss);
}

std::string observed_text(const Value& observed) {
  const auto* loss = std::get_if<double>(&observed);
  return loss == nullptr ? "a run that checks it diverged" : fmt::format("observed {:.5g}", *loss);
}

}  // namespace

Status add_fit(Database& record, io::FileSystem& fs, const std::string& name, const std::string& folder) {
  const std::string path = io::join_path(folder, scaling::kFitFile);
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  ASSIGN_OR_RETURN(const scaling::ScalingFit fit, scaling::parse_fit(text, path));
  RETURN_IF_ERROR(record.insert(
      "fits", {name, fit.counted, static_cast<int64_t>(fit.runs.size()), static_cast<int64_t>(fit.unknowns),
               fit.floor.value, fit.floor.low, fit.floor.high, fit.size_factor.value, fit.size_exponent.value,
               fit.size_exponent.low, fit.size_exponent.high, fit.data_factor.value, fit.data_exponent.value,
               fit.data_exponent.low, fit.data_exponent.high, fit.objective, fit.noise}));
  std::map<std::string, std::vector<scaling::ScalingRun>> series;
  for (const scaling::FittedRun& run : fit.runs) {
    const scaling::ScalingRun& n = run.numbers;
    RETURN_IF_ERROR(record.insert(
        "fit_runs", {name, run.run, series_of(run), n.parameters, n.tokens, n.flops, n.loss, run.fitted}));
    series[series_of(run)].push_back(n);
  }
  const numerics::HostArithmetic arithmetic;
  for (const auto& [label, runs] : series)
    for (const scaling::ScalingRun& point : curve(fit, runs))
      RETURN_IF_ERROR(record.insert("fit_curves", {name, label, point.parameters, point.tokens, point.loss}));
  return {};
}

Status add_forecasts(Database& record, io::FileSystem& fs, const Plan& plan, const LabState& state,
                     const Registry& registry, const Journal& journal) {
  for (const StepState& s : state.steps) {
    const std::string& name = s.step->name;
    if (s.step->kind->name != "forecast" || s.action != Action::kSkip) continue;
    const std::string path = io::join_path(state.made.at(name).folder, scaling::kForecastFile);
    ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
    ASSIGN_OR_RETURN(const scaling::ScalingForecast forecast, scaling::parse_forecast(text, path));
    const RegistryEntry* entry = registry.forecast(name, s.content);
    bool is_late = entry != nullptr && !entry->late.empty(), is_open = plan.sanity, diverged = false;
    std::vector<double> losses;
    std::vector<std::string> targets;
    for (const StepState& other : state.steps) {
      if (other.step->kind->name != "eval") continue;
      const StepState* training = state.find(other.step->inputs.at("of"));
      const std::string* checked = checked_forecast(*training->step);
      if (checked == nullptr || *checked != name) continue;
      if (!training->fingerprint.empty()) targets.push_back(training->fingerprint);
      is_open |= !other.is_settled();
      if (other.action != Action::kSkip) continue;
      ASSIGN_OR_RETURN(const std::optional<double> loss, loss_of(record, other.step->name));
      if (loss) losses.push_back(*loss);
      diverged |= !loss;
    }
    is_open |= losses.empty() && !diverged;
    // Of several forecasts the last one before the target counts; an earlier one would be chosen by the
    // result.
    const auto in_time = registry.forecasts_before(name, journal, targets);
    is_late |= entry != nullptr && (in_time.empty() || in_time.back()->content != s.content);
    std::set<std::string> contents;
    for (const RegistryEntry* registered : in_time) contents.insert(registered->content);
    Value observed;
    std::string verdict = "open";
    if (!is_open && diverged) {
      verdict = "outside";
    } else if (!is_open) {
      const double mean = interval95(losses).mean;
      observed = mean;
      verdict = forecast.loss.low <= mean && mean <= forecast.loss.high ? "inside" : "outside";
    }
    const auto of = [](const std::optional<scaling::Estimate>& estimate, double scaling::Estimate::* member) {
      return estimate ? Value((*estimate).*member) : Value();
    };
    RETURN_IF_ERROR(record.insert("forecasts", {name,
                                                s.step->inputs.at("fit"),
                                                forecast.parameters,
                                                forecast.tokens,
                                                forecast.flops,
                                                forecast.runs,
                                                forecast.loss.value,
                                                forecast.loss.low,
                                                forecast.loss.high,
                                                of(forecast.best_parameters, &scaling::Estimate::value),
                                                of(forecast.best_parameters, &scaling::Estimate::low),
                                                of(forecast.best_parameters, &scaling::Estimate::high),
                                                of(forecast.best_tokens, &scaling::Estimate::value),
                                                of(forecast.best_tokens, &scaling::Estimate::low),
                                                of(forecast.best_tokens, &scaling::Estimate::high),
                                                observed,
                                                verdict,
                                                entry == nullptr ? Value() : Value(entry->hash),
                                                int64_t{is_late ? 1 : 0},
                                                static_cast<int64_t>(contents.size())}));
  }
  return {};
}

Result<std::vector<std::string>> forecast_lines(const Database& record) {
  ASSIGN_OR_RETURN(
      const Rows rows,
      record.select("SELECT name, loss, low90, high90, observed, verdict, late, entry, registered "
                    "FROM forecasts"));
  std::vector<std::string> out;
  for (const auto& row : rows.rows) {
    const std::string name = value_text(row[0]), verdict = value_text(row[5]);
    const auto number = [&](size_t i) { return std::get<double>(row[i]); };
    const int64_t number_registered = std::get<int64_t>(row[8]);
    out.push_back(fmt::format(
        "forecast {}: loss {:.5g}, with 90 % from {:.5g} to {:.5g}{}; {}{}{}", name, number(1), number(2),
        number(3), value_text(row[7]).empty() ? ", not registered" : "",
        verdict == "open" ? "the runs that check it are not done" : observed_text(row[4]) + ", " + verdict,
        value_text(row[6]) == "1"
            ? "; late: it was registered after a result, or is not the last one before it"
            : "",
        number_registered > 1
            ? fmt::format("; {} forecasts were registered before the target was done", number_registered)
            : ""));
  }
  return out;
}

}  // namespace ostro::lab
