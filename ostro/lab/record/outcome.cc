#include "ostro/lab/record/outcome.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ostro/lab/registry/uses.h"

namespace ostro::lab {
namespace {

constexpr size_t kMostValues = 10'000;

Result<std::vector<std::pair<std::string, double>>> metric_values(const Hypothesis& hypothesis,
                                                                  const Rows& rows) {
  const auto wrong = [&](const std::string& message) {
    return invalid_argument(
        fmt::format("{}: hypotheses.{}.metric: {}", hypothesis.where, hypothesis.name, message));
  };
  if (rows.rows.empty()) return wrong("gives no rows, though all steps that it uses are done");
  if (rows.rows.size() > kMostValues)
    return wrong(fmt::format("gives {} rows; at most {} can be", rows.rows.size(), kMostValues));
  std::vector<std::pair<std::string, double>> out;
  std::set<std::string> units;
  for (const auto& row : rows.rows) {
    const std::string unit = value_text(row[0]);
    if (!units.insert(unit).second) return wrong(fmt::format("gives two values of \"{}\"", unit));
    const auto* real = std::get_if<double>(&row[1]);
    const auto* whole = std::get_if<int64_t>(&row[1]);
    const double value = real != nullptr ? *real : whole != nullptr ? static_cast<double>(*whole) : NAN;
    if (!std::isfinite(value))
      return wrong(fmt::format("gives \"{}\" of {}, which is no finite number", value_text(row[1]), unit));
    out.emplace_back(unit, value);
  }
  return out;
}

void decide_verdict(Outcome& out) {
  const Hypothesis& hypothesis = *out.hypothesis;
  const auto [least, most] = std::minmax_element(
      out.values.begin(), out.values.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::map<std::string, double> numbers = {{"n", static_cast<double>(out.values.size())},
                                           {"mean", out.interval.mean},
                                           {"min", least->second},
                                           {"max", most->second}};
  if (out.interval.low) numbers["low95"] = *out.interval.low;
  if (out.interval.high) numbers["high95"] = *out.interval.high;
  if (hypothesis.predict) {
    numbers["low"] = hypothesis.predict->low;
    numbers["high"] = hypothesis.predict->high;
    out.held = hypothesis.predict->low <= out.interval.mean && out.interval.mean <= hypothesis.predict->high;
  }
  const bool supported = hypothesis.supported.holds(numbers), refuted = hypothesis.refuted.holds(numbers);
  out.verdict = supported == refuted ? "neither" : supported ? "supported" : "refuted";
}

}  // namespace

Result<std::vector<Outcome>> find_outcomes(const Database& record, const Plan& plan, const LabState& state,
                                           const Registry& registry) {
  std::vector<Outcome> out;
  ASSIGN_OR_RETURN(const auto uses, used_steps(plan));
  const RegistryEntry* registered = registry.registration();
  for (const Hypothesis& hypothesis : plan.hypotheses) {
    Outcome outcome;
    outcome.hypothesis = &hypothesis;
    const auto has = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), hypothesis.name) != names.end();
    };
    if (registered != nullptr && has(registered->hypotheses)) {
      outcome.registration = registered->registration;
      outcome.beacon = registry.beacon_of(registered->registration);
    }
    for (const RegistryEntry& entry : registry.entries()) outcome.late |= has(entry.late);
    const std::set<std::string>& steps = uses.at(hypothesis.name);
    const bool done = std::all_of(steps.begin(), steps.end(), [&](const std::string& step) {
      return state.find(step)->action == Action::kSkip;
    });
    if (!registry.withdrawn(hypothesis.name).empty()) {
      outcome.verdict = "withdrawn";
    } else if (done && !plan.sanity) {
      const auto rows = record.select(hypothesis.metric);
      if (!rows.ok())
        return rows.error().with_context(
            fmt::format("{}: hypotheses.{}.metric", hypothesis.where, hypothesis.name));
      ASSIGN_OR_RETURN(outcome.values, metric_values(hypothesis, *rows));
      outcome.number_class = rows->number_class;
      std::vector<double> values;
      for (const auto& [unit, value] : outcome.values) values.push_back(value);
      outcome.interval = interval95(values);
      if (!std::isfinite(outcome.interval.mean) ||
          (outcome.interval.high && !std::isfinite(*outcome.interval.high - *outcome.interval.low)))
        return invalid_argument(
            fmt::format("{}: hypotheses.{}.metric: mean or interval is too large for a double",
                        hypothesis.where, hypothesis.name));
      decide_verdict(outcome);
    }
    out.push_back(std::move(outcome));
  }
  return out;
}

Status add_outcomes(Database& record, const std::vector<Outcome>& outcomes, const Registry& registry) {
  const auto or_null = [](const std::optional<double>& value) { return value ? Value(*value) : Value(); };
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Value() : Value(text); };
  for (const Outcome& o : outcomes) {
    const Hypothesis& h = *o.hypothesis;
    const bool has = !o.values.empty();
    std::optional<double> low, high, chance;
    if (h.predict) low = h.predict->low, high = h.predict->high, chance = h.predict->chance;
    RETURN_IF_ERROR(record.insert(
        "hypotheses",
        {h.name, h.metric, h.supported.text(), h.refuted.text(),
         has ? Value(static_cast<int64_t>(o.values.size())) : Value(), has ? Value(o.interval.mean) : Value(),
         or_null(o.interval.low), or_null(o.interval.high), o.verdict,
         has ? Value(std::string(class_name(o.number_class))) : Value(), or_null(low), or_null(high),
         or_null(chance), o.held ? Value(int64_t{*o.held ? 1 : 0}) : Value(), text_or_null(o.registration),
         text_or_null(o.beacon), int64_t{o.late ? 1 : 0}}));
    for (const auto& [unit, value] : o.values)
      RETURN_IF_ERROR(record.insert("metrics", {h.name, unit, value}));
  }
  int64_t number = 1;  // the first line names the format
  for (const RegistryEntry& e : registry.entries())
    RETURN_IF_ERROR(record.insert(
        "registry",
        {++number, e.kind, e.hash, text_or_null(e.registration), text_or_null(e.hypothesis),
         text_or_null(e.kind == "beacon" ? e.value : e.reason), fmt::format("{}", fmt::join(e.changes, "\n")),
         fmt::format("{}", fmt::join(e.late, ",")), e.journal, e.time, text_or_null(e.public_key)}));
  return {};
}

}  // namespace ostro::lab
