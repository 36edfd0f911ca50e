// How much the tests labelled slow do: a sample, or with OSTRO_EXHAUSTIVE=1 everything (an hour or more).
#pragma once

#include <cstdlib>

namespace ostro {

inline bool exhaustive_tests() { return std::getenv("OSTRO_EXHAUSTIVE") != nullptr; }

}  // namespace ostro
