// add_collectives: the bytes that the collectives of a program send, and those that they make whole; computed
// before the program runs. No errors; any thread may call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/ir/program/mesh.h"
#include "ostro/ir/program/program.h"
#include "ostro/train/step/step.h"

namespace ostro::fleet {

// Adds what `runs` runs of the program by worker `rank` send to other workers, by collective and mesh axis.
// `where` says which program it is.
void add_collectives(const ir::Program& program, const ir::Mesh& mesh, int64_t rank, int64_t runs,
                     const std::string& where, std::vector<train::Sent>& sent);
// Adds one entry, or adds to the one with the same words. Nothing is added for 0 bytes.
void add_sent(std::vector<train::Sent>& sent, const std::string& what, int64_t times, int64_t bytes);

// The most bytes that collectives over the mesh axes which carry leaves make whole or take whole in one
// block: parameters that they gather, and gradients that they exchange.
struct WholeBytes {
  int64_t parameters = 0, gradients = 0;
};
WholeBytes whole_in_one_block(const ir::Block& block);

}  // namespace ostro::fleet
