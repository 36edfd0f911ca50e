// What the collectives of a program send, computed before it runs.
#pragma once

#include <cstdint>

#include "ostro/ir/program/mesh.h"
#include "ostro/ir/program/program.h"

namespace ostro::train {

// What one run of a block sends to other workers: every collective sends its operand to each peer, and those
// whose shards may differ in size send the size before.
int64_t collective_bytes(const ir::Block& block, const ir::Mesh& mesh);

}  // namespace ostro::train
