// lab_kinds: the command `ostro lab kinds`.
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_kinds(Args args);

}  // namespace ostro::cli
