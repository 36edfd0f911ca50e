// lab_without: the command `ostro lab without`.
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_without(Args args);

}  // namespace ostro::cli
