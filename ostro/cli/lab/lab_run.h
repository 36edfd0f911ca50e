// lab_run: the command `ostro lab run`.
#pragma once

#include "ostro/cli/main/args.h"

namespace ostro::cli {

int lab_run(Args args);

}  // namespace ostro::cli
