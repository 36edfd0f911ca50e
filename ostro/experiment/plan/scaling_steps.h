// add_scaling_steps: a scaling plan as the key `scaling` of a plan has it, expanded into steps: trainings of
// some sizes for some budgets, their evaluations, a fit, a forecast, and the trainings that check it. Private
// to the sub-room.
#pragma once

#include "ostro/config/node.h"

namespace ostro::lab {

// Adds the steps of each scaling plan to the map of steps. NAME gives NAME-BUDGET and NAME-BUDGET-eval for
// each budget, NAME-fit, and with a target NAME-forecast, NAME-target and NAME-target-eval. Errors, with
// place: a key that is unknown, missing or of a wrong form; fewer runs than the fit needs; a budget that
// names no size; a target that is not larger than the budgets; a step that is there already.
Status add_scaling_steps(const config::Node& scaling, config::Node& steps);

}  // namespace ostro::lab
