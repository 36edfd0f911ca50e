// lab_adopt: the command `ostro lab adopt`.
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_adopt(Args args);

}  // namespace ostro::cli
