// The elements of a `constant` op.
#pragma once

#include <cstddef>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::compile {

// The element of a splat (one element), or all elements of raw data. Little-endian, as in memory.
std::vector<std::byte> constant_bytes(const ir::Op& op, const ir::Shape& shape);

}  // namespace ostro::compile
