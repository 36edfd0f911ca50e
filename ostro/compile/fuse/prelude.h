// The C text in front of every generated file: types, bf16, and the functions of docs/spec/numerics.md N1-N3
// and N9. It shares no code with ostro/numerics; prelude tests compare the two.
#pragma once

#include <string>

namespace ostro::compile {

const std::string& prelude_text();

}  // namespace ostro::compile
