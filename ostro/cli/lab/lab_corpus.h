// lab_corpus: the command `ostro lab corpus`.
#pragma once

#include "ostro/cli/main/args.h"

namespace ostro::cli {

int lab_corpus(Args args);

}  // namespace ostro::cli
