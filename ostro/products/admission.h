// bf16_admitted: the start-up check of docs/spec/numerics.md, N7.6: an instruction set whose bf16 product
// differs from the definition is not used.
#pragma once

#include "ostro/machine/isa.h"

namespace ostro::kernels {

// True when the bf16 product of `isa` (which must be available) gives the scalar definition's bits on the
// boundary cases at 2^-126, signed zeros, overflow and more than 1,000 random groups. Runs once per process
// and instruction set, about a millisecond; a difference is logged.
bool bf16_admitted(machine::Isa isa);

}  // namespace ostro::kernels
