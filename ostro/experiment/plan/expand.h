// expand_steps: steps as declared, with sweeps, to one Step for each choice. Private to the sub-room.
#pragma once

#include <vector>

#include "ostro/experiment/plan/plan.h"

namespace ostro::lab {

// `steps` is the map of the plan's key of that name. Errors: as read_plan.
Result<std::vector<Step>> expand_steps(const config::Node& steps);

}  // namespace ostro::lab
