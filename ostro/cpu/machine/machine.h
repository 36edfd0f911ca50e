// What the processor can run; isa.h keeps it. Apart from isa.h so that a test program can be linked with
// another machine than the one it runs on (tests/emulated).
#pragma once

#include "ostro/cpu/machine/isa.h"

namespace ostro::cpu {

struct Machine {
  bool has[std::size(kAllIsas)] = {};  // by the ISA's number
  bool amd = false;
};
Machine detect_machine();  // asks the processor at every call

// What a compiler is told to generate code for the ISA.
const char* target_flags(Isa isa);

}  // namespace ostro::cpu
