// The prelude: the text in front of every generated file. Types, bf16, and the functions of
// docs/spec/numerics.md N1-N3 and N9. It shares no code with ostro/numerics; prelude tests compare the two.
#pragma once

#include <string>

#include "ostro/compile/text/dialect.h"

namespace ostro::compile {

std::string prelude_text(const Dialect& dialect);

}  // namespace ostro::compile
