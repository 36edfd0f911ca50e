// Machine: what the processor can run; isa.h asks once and keeps the answer.
//
// It is separate from isa.h so that a test program can be linked with an emulated machine (tests/emulated).
#pragma once

#include "ostro/cpu/machine/isa.h"

namespace ostro::cpu {

struct Machine {
  bool has[std::size(kAllIsas)] = {};  // by the ISA's number
  bool amd = false;
};
Machine detect_machine();  // asks the processor at every call

// The compiler flags that generate code for the ISA.
const char* target_flags(Isa isa);

}  // namespace ostro::cpu
