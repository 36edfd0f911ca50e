// lab_diff: ostro lab diff
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_diff(Args args);

}  // namespace ostro::cli
