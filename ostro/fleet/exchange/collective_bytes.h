// add_collectives, whole_in_one_block: the bytes that the collectives of a program send, and those of the
// arrays that they gather or exchange whole. Both are computed from the program, before it runs. Pure
// functions; there are no errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/fleet/slices/slices.h"
#include "ostro/ir/program/mesh.h"
#include "ostro/ir/program/program.h"
#include "ostro/train/step/step.h"

namespace ostro::fleet {

// Adds to `sent` the bytes that worker `rank` sends to other workers in `runs` runs of the program, one entry
// for each collective and mesh axis. `where` names the program in the entries. `slices`: of the mesh's
// workers.
void add_collectives(const ir::Program& program, const ir::Mesh& mesh, const Slices& slices, int64_t rank,
                     int64_t runs, const std::string& where, std::vector<train::Sent>& sent);
// Adds an entry, or adds the numbers to the entry with the same `what`. `between`: those of the bytes that go
// to other slices. Does nothing for 0 bytes.
void add_sent(std::vector<train::Sent>& sent, const std::string& what, int64_t times, int64_t bytes,
              int64_t between = 0);
// Adds what worker `rank` sends in gather_all of messages of these sizes; the entry's times are rounds.
void add_gathered(const std::vector<int64_t>& sizes, const Slices& slices, int64_t rank,
                  const std::string& what, std::vector<train::Sent>& sent);

// The bytes of arrays that are whole in one worker's memory for a collective. `parameters`: the results of
// gathering over a mesh axis that carries leaves (train::kLeafAxes). `gradients`: the operands of
// exchange_leaves.
struct WholeBytes {
  int64_t parameters = 0, gradients = 0;
};
// The most bytes of either kind that one block needs: this block, or one nested in it.
WholeBytes whole_in_one_block(const ir::Block& block);

}  // namespace ostro::fleet
