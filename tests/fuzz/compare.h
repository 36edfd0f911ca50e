// Do two engines give the same bits on a program?
#pragma once

#include <optional>
#include <string>

#include "ostro/runtime/engine.h"
#include "random_program.h"

namespace ostro::fuzz {

// How the outputs of the runs look, so that equal NaNs prove nothing unnoticed.
struct OutputStats {
  int64_t outputs = 0;
  int64_t finite = 0;  // all elements finite (or not floating)
  int64_t varied = 0;  // has more than one value, or one element only
};

// The difference between engine `a` on the program and engine `b` on the program after a round trip through
// its text: an error, or the first differing element with both values and the op that made it. Two NaNs are
// equal whatever their payload (numerics.md N0). nullopt: the same bits.
std::optional<std::string> difference(runtime::Engine& a, runtime::Engine& b, const RandomCase& c,
                                      OutputStats* stats = nullptr);

// The same program returning every value of its body, to name the first op that differs.
RandomCase returning_everything(const RandomCase& c);

}  // namespace ostro::fuzz
