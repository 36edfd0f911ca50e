// lab_run: the command `ostro lab run`.
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_run(Args args);

}  // namespace ostro::cli
