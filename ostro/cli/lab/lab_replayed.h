// lab_replayed: `ostro lab replayed`.
#pragma once

#include "ostro/cli/main/args.h"

namespace ostro::cli {

int lab_replayed(Args args);

}  // namespace ostro::cli
