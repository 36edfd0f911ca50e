// int8_kernel: the kernel for products of int8 numbers (docs/spec/numerics.md, N20) of an instruction set:
// the fastest of those that the processor has and that pass the start-up check.
//
// The check compares a kernel once, at its first use, with the scalar definition, on largest numbers of
// either sign, zeros, short blocks and random blocks. A kernel that differs is logged and never used. The
// functions are thread-safe.
#pragma once

#include <string>
#include <vector>

#include "ostro/machine/isa.h"

namespace ostro::kernels {

struct DotInt8Kernel;

const DotInt8Kernel& int8_kernel(machine::Isa isa);

// All kernels that this process can run, admitted or not.
std::vector<const DotInt8Kernel*> int8_kernels();

// The check itself: the first difference from the definition, or an empty text.
std::string int8_difference(const DotInt8Kernel& kernel);

// Whether one of int8_kernels() passes the check, which runs once.
bool int8_admitted(const DotInt8Kernel& kernel);

}  // namespace ostro::kernels
