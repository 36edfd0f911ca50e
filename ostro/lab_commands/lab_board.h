// lab_board: the command `ostro lab board`.
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_board(Args args);

}  // namespace ostro::cli
