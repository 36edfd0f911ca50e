// choose_isa, best_isa: choose the instruction set that this process uses. All give the same bits, so only
// speed matters.
#pragma once

#include <string_view>

#include "ostro/base/error.h"
#include "ostro/machine/isa.h"

namespace ostro::kernels {

// The fastest ISA by vendor that passes the start-up check (admission.h): AMX where present; AVX512-BF16 on
// AMD only, because elsewhere VDPBF16PS runs at a quarter of the FMA rate and emulation on plain AVX-512 is
// faster.
machine::Isa best_isa();

// The ISA named `requested`, or the best one when it is empty. Error: an unknown name, or an ISA that this
// machine lacks or that fails the start-up check.
Result<machine::Isa> choose_isa(std::string_view requested);

// choose_isa with the value of the environment variable OSTRO_ISA.
Result<machine::Isa> choose_isa();

}  // namespace ostro::kernels
