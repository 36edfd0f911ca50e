// lab_step: ostro lab step
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_step(Args args);

}  // namespace ostro::cli
