// lab_report: the command `ostro lab report`.
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_report(Args args);

}  // namespace ostro::cli
