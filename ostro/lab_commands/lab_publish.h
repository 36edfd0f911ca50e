// lab_publish: the command `ostro lab publish`.
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_publish(Args args);

}  // namespace ostro::cli
