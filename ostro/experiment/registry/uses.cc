#include "ostro/experiment/registry/uses.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/experiment/plan/halving.h"
#include "ostro/experiment/tables/database.h"

namespace ostro::lab {
namespace {

// Whether a table has results of steps of this kind.
bool has_results(const std::string& table, const StepKind& kind) {
  if (table == "evaluations" || table == "evaluation_parts") return kind.name == "eval";
  if (table == "rungs") return kind.name == kRung;
  if (table == "samples") return kind.name == "sample";
  if (table == "models") return kind.gives_model();
  if (table == "outputs") return kind.name == kCommandKind;
  if (table == "stores" || table == "left_out") return kind.name == "tokens";
  if (table.starts_with("fit")) return kind.name == "fit";
  for (const char* of_runs : {"runs", "forks", "config", "chain", "phases", "checkpoints"})
    if (table == of_runs) return kind.makes_run();
  return false;
}

}  // namespace

Result<std::map<std::string, std::set<std::string>>> used_steps(const Plan& plan) {
  std::map<std::string, std::set<std::string>> out;
  if (plan.hypotheses.empty()) return out;
  ASSIGN_OR_RETURN(const Database record, Database::create(/*measured=*/true));
  for (const Hypothesis& hypothesis : plan.hypotheses) {
    const auto wrong = [&](const std::string& message) {
      return invalid_argument(
          fmt::format("{}: hypotheses.{}.metric: {}", hypothesis.where, hypothesis.name, message));
    };
    const auto reads = record.reads(hypothesis.metric);
    if (!reads.ok()) return wrong(reads.error().message());
    if (reads->columns != 2)
      return wrong(
          fmt::format("gives {} columns; a metric gives two: what the value is of (for example the "
                      "step), and the value",
                      reads->columns));
    if (reads->number_class == NumberClass::kMeasured)
      return wrong("reads what a clock or a machine gave, which is another number each time");
    for (const char* later : {"hypotheses", "metrics", "registry", "forecasts"})
      if (reads->tables.contains(later))
        return wrong(fmt::format("reads the table {}, which is made of what was registered", later));
    std::set<std::string>& steps = out[hypothesis.name];
    std::set<std::string> seen;
    for (const Step& step : plan.steps)
      if (std::any_of(reads->tables.begin(), reads->tables.end(),
                      [&](const std::string& table) { return has_results(table, *step.kind); })) {
        steps.insert(step.name);
        for (const Step* needed : plan.needed_by(step, seen))
          if (needed->kind->makes_run() || needed->kind->name == "eval" || needed->kind->name == kRung)
            steps.insert(needed->name);
      }
    if (steps.empty())
      return wrong("reads no result of a step of the plan; read for example evaluations or chain");
  }
  return out;
}

}  // namespace ostro::lab
