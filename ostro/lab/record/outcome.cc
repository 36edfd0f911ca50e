#include "ostro/lab/record/outcome.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "ostro/experiment/registry/frozen.h"
#include "ostro/experiment/registry/uses.h"
#include "ostro/experiment/tables/replayed.h"
#include "ostro/sql/operands.h"

namespace ostro::lab {
namespace {

constexpr size_t kMostValues = 10'000;

// Takes the values of the metric and their interval, or the reason why they give no verdict.
void take_values(const Rows& rows, const std::string& metric, Outcome& out) {
  if (rows.rows.empty()) out.reason = "the metric gives no rows";
  if (rows.rows.size() > kMostValues)
    out.reason = fmt::format("the metric gives {} rows; at most {} can be", rows.rows.size(), kMostValues);
  std::set<std::string> units;
  std::vector<double> values;
  for (const auto& row : rows.rows) {
    if (!out.reason.empty()) return;
    const std::string unit = value_text(row[0]);
    if (!units.insert(unit).second) out.reason = fmt::format("the metric gives two values of \"{}\"", unit);
    const auto* real = std::get_if<double>(&row[1]);
    const auto* whole = std::get_if<int64_t>(&row[1]);
    values.push_back(real != nullptr ? *real : whole != nullptr ? static_cast<double>(*whole) : NAN);
    if (!std::isfinite(values.back()))
      out.reason =
          fmt::format("the metric gives \"{}\" of {}, which is no finite number{}", value_text(row[1]), unit,
                      std::holds_alternative<std::monostate>(row[1]) ? sql::division_hint(metric) : "");
  }
  if (!out.reason.empty()) return;
  out.interval = interval95(values);
  if (!std::isfinite(out.interval.mean) ||
      (out.interval.high && !std::isfinite(*out.interval.high - *out.interval.low))) {
    out.interval = {};
    out.reason = "mean or interval is too large for a double";
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) out.values.emplace_back(value_text(rows.rows[i][0]), values[i]);
}

// The entries of the registry that first registered the hypotheses as the last registration has them.
Result<std::map<std::string, std::string>> first_entries(io::FileSystem& fs, const Plan& plan,
                                                         const Registry& registry) {
  std::map<std::string, std::string> out;
  std::map<std::string, FrozenHypothesis> last;
  for (auto it = registry.entries().rbegin(); it != registry.entries().rend(); ++it) {
    if (it->kind != "register") continue;
    ASSIGN_OR_RETURN(const std::string text, fs.read_file(frozen_path(plan.directory(), it->registration)));
    const auto now = frozen_hypotheses(text);
    if (&*it == registry.registration()) last = now;
    for (auto was = last.begin(); was != last.end();) {
      const auto found = now.find(was->first);
      const bool same = found != now.end() && found->second.definition == was->second.definition;
      if (same) out[was->first] = it->hash;
      was = same ? std::next(was) : last.erase(was);
    }
    if (last.empty()) break;
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

Result<std::vector<Outcome>> find_outcomes(io::FileSystem& fs, const Database& record, const Plan& plan,
                                           const LabState& state, const Registry& registry,
                                           const Journal& journal) {
  std::vector<Outcome> out;
  ASSIGN_OR_RETURN(const auto first, first_entries(fs, plan, registry));
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
    if (const auto entry = first.find(hypothesis.name); entry != first.end())
      outcome.late |= std::any_of(steps.begin(), steps.end(), [&](const std::string& step) {
        return journal.was_done_before(state.find(step)->fingerprint, entry->second);
      });
    const bool done = std::all_of(steps.begin(), steps.end(),
                                  [&](const std::string& step) { return state.find(step)->is_settled(); });
    if (!registry.withdrawn(hypothesis.name).empty()) {
      outcome.verdict = "withdrawn";
    } else if (done && !plan.sanity) {
      const auto rows = ask_record(record, hypothesis.metric);
      if (!rows.ok())
        return rows.error().with_context(
            fmt::format("{}: hypotheses.{}.metric", hypothesis.where, hypothesis.name));
      outcome.number_class = rows->number_class;
      take_values(*rows, hypothesis.metric, outcome);
      if (outcome.reason.empty())
        decide_verdict(outcome);
      else
        outcome.verdict = "neither";
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
         or_null(o.interval.low), or_null(o.interval.high), o.verdict, text_or_null(o.reason),
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
