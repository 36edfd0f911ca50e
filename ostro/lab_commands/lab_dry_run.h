// lab_dry_run: `ostro lab run --dry_run`: what would be done of each step, and what its trainings take. It
// prints, and returns the exit code.
#pragma once

#include <string>

#include "ostro/context/context.h"
#include "ostro/lab/drive/lab_state.h"

namespace ostro::cli {

int lab_dry_run(const Context& context, const lab::Plan& plan, bool every_byte);

// A step in a line of its own: what is done with it, its name, and why.
std::string state_line(const lab::StepState& state);

}  // namespace ostro::cli
