// lab_check: ostro lab check
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_check(Args args);

}  // namespace ostro::cli
