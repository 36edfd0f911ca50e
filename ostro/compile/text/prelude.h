// prelude_text: the prelude, the text at the beginning of every generated file: types, bf16, and the
// functions of docs/spec/numerics.md N1-N3 and N9. It shares no code with ostro/numerics; prelude tests
// compare the two. A pure function.
#pragma once

#include <string>

#include "ostro/compile/text/dialect.h"

namespace ostro::compile {

std::string prelude_text(const Dialect& dialect);

}  // namespace ostro::compile
