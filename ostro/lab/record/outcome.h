// Outcome: what came out of a hypothesis: its metric, mean, interval and verdict, with what is registered.
#pragma once

#include "ostro/experiment/registry/registry.h"
#include "ostro/experiment/tables/database.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/lab/record/interval.h"

namespace ostro::lab {

struct Outcome {
  const Hypothesis* hypothesis = nullptr;
  // "supported", "refuted", "neither"; "open" until all steps that it uses are done under its registration;
  // "withdrawn".
  std::string verdict = "open";
  std::string reason;  // why the metric gives no verdict, which is "neither" then; else empty
  std::vector<std::pair<std::string, double>> values;  // what each is of, and the value
  Interval interval;                                   // of values, unless there are none
  NumberClass number_class = NumberClass::kDeclared;   // of the metric
  std::optional<bool> held;                            // whether the mean lies where it was predicted
  std::string registration, beacon;                    // empty: none
  // Registered or changed after a result of its steps: of steps with these names, as the registry's entry
  // says, or with these fingerprints, as the journal does.
  bool late = false;
};

// Of all hypotheses of the plan, asked of the record of `state`. A metric that gives no rows, one thing
// twice, or what is no finite number (of a run that diverged) is an outcome, with the reason. Errors: a query
// or a frozen text that cannot be read.
Result<std::vector<Outcome>> find_outcomes(io::FileSystem& fs, const Database& record, const Plan& plan,
                                           const LabState& state, const Registry& registry,
                                           const Journal& journal);

// Writes the tables hypotheses, metrics and registry.
Status add_outcomes(Database& record, const std::vector<Outcome>& outcomes, const Registry& registry);

}  // namespace ostro::lab
