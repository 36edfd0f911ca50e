// lab_register, lab_beacon: the commands `ostro lab register` and `ostro lab beacon`.
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_register(Args args);
int lab_beacon(Args args);

}  // namespace ostro::cli
