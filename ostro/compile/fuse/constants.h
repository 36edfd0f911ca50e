// constant_bytes: the elements of a `constant` op. Aborts on data that is not hexadecimal. A pure
// function.
#pragma once

#include <cstddef>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::compile {

// One element for a splat, all elements for raw data. Little-endian, as in memory.
std::vector<std::byte> constant_bytes(const ir::Op& op, const ir::Shape& shape);

}  // namespace ostro::compile
