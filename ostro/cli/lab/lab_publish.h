// lab_publish: the command `ostro lab publish`.
#pragma once

#include "ostro/cli/main/args.h"

namespace ostro::cli {

int lab_publish(Args args);

}  // namespace ostro::cli
