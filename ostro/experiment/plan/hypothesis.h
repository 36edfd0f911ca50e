// Hypothesis: what a plan expects, and the rules that decide whether it is so. A value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/config/node.h"
#include "ostro/experiment/plan/rule.h"

namespace ostro::lab {

// That the mean lies from low to high, with this chance.
struct Prediction {
  double low = 0, high = 0, chance = 0;
};

struct Hypothesis {
  std::string name, where;
  std::string metric;  // a SELECT that gives rows (unit, value), for example a row for each seed
  std::optional<Prediction> predict;
  Rule supported, refuted;
};

// The plan's map `hypotheses`. Errors: as read_plan; a rule with `low` or `high` and no prediction.
Result<std::vector<Hypothesis>> read_hypotheses(const config::Node& map);

}  // namespace ostro::lab
