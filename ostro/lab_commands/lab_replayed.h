// lab_replayed: `ostro lab replayed`.
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_replayed(Args args);

}  // namespace ostro::cli
