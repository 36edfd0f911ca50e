// lab_corpus: the command `ostro lab corpus`.
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_corpus(Args args);

}  // namespace ostro::cli
