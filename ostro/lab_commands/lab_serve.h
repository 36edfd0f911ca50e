// lab_site, lab_serve: the commands `ostro lab site` and `ostro lab serve`.
#pragma once

#include "ostro/shell/words/args.h"

namespace ostro::cli {

int lab_site(Args args);
int lab_serve(Args args);

}  // namespace ostro::cli
