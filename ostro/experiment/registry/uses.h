// used_steps: the steps whose results a hypothesis uses, so that they wait until it is registered.
// A pure function.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ostro/experiment/plan/plan.h"

namespace ostro::lab {

// By the hypothesis's name: the steps whose rows are in the tables that its metric reads, and the trainings
// and evaluations that these need. Errors, with the place of the hypothesis: a metric that is no SELECT of
// two columns, reads what a clock gave or other hypotheses, or reads no result of a step.
Result<std::map<std::string, std::set<std::string>>> used_steps(const Plan& plan);

}  // namespace ostro::lab
