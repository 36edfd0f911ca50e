// What the collectives of a program send, computed before it runs.
#pragma once

#include <cstdint>

#include "ostro/ir/program/mesh.h"
#include "ostro/ir/program/program.h"

namespace ostro::train {

// What one run of a block by worker `rank` sends to other workers.
int64_t collective_bytes(const ir::Block& block, const ir::Mesh& mesh, int64_t rank);

}  // namespace ostro::train
