// The elements of a `constant` op.
#pragma once

#include <cstddef>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::compile {

// One element for a splat, all elements for raw data. Little-endian, as in memory.
std::vector<std::byte> constant_bytes(const ir::Op& op, const ir::Shape& shape);

}  // namespace ostro::compile
