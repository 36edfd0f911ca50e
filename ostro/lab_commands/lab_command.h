// lab_command: `ostro lab VERB`.
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

// Runs the verb that the first word names. Returns the exit status.
int lab_command(Args args);

}  // namespace ostro::cli
