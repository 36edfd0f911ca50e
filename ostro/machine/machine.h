// Machine: what the processor can run; isa.h asks once and keeps the answer.
//
// It is separate from isa.h so that a test program can be linked with an emulated machine (tests/emulated).
#pragma once

#include "ostro/machine/isa.h"

namespace ostro::machine {

struct Machine {
  bool has[std::size(kAllIsas)] = {};  // by the ISA's number
  bool amd = false;
  // Products of int8 numbers: AVX-VNNI, AVX-512 VNNI and AMX-INT8, where the vectors or tiles they work on
  // are there. They are no instruction sets of their own (int8_admission.h).
  bool vnni256 = false, vnni512 = false, amx_int8 = false;
};
Machine detect_machine();  // asks the processor at every call

// The compiler flags that generate code for the ISA.
const char* target_flags(Isa isa);

}  // namespace ostro::machine
