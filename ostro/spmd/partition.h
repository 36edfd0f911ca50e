// partition: makes, from one Program, a Program for each worker of a mesh; together they give the same bits.
// A pure function.
//
// Each op is rewritten by itself: with the sizes of the worker's part, with shifted origins, and with a
// collective where it sums over a split axis (docs/spec/spmd.md).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"
#include "ostro/spmd/layout.h"
#include "ostro/spmd/leaf_exchange.h"

namespace ostro::spmd {

// The mesh, the maps, and the roles of the program's values.
struct PartitionOptions {
  ir::Sharding sharding;
  Cells cells;  // numerics.cells
  // The mesh axes along which workers run the program on different leaves of the batch. No activation may be
  // mapped to them; parameters may, and are gathered by `use`.
  std::vector<std::string> leaf_axes = {};
  Beside beside = {};  // axes that are split only in some values
  // Set: a result with Role::kGradient is not the gradient of this worker's leaf. The workers of the leaf
  // axes exchange their gradients, and each keeps the sums over the round's subtrees of leaves, of the cells
  // that it owns: [part, the gradient's axes], split as a parameter is. A gradient that a scan stacks, such
  // as that of all layers, is exchanged slice by slice in the scan: [layers, part, ...].
  std::optional<LeafExchange> exchange = {};
  // One per parameter and per result of the program.
  std::vector<Role> params, results;
  // Set: only this worker's program is made, for a process that is this worker and no other.
  std::optional<int64_t> only = {};
  // The role of every value in between: kActivation for a program that computes the loss of a leaf of a
  // batch, kParameter for the optimizer's update, which works on parameters only.
  Role values = Role::kActivation;
};

// The programs of all workers, and the layouts of their inputs and results.
struct Partition {
  ir::Mesh mesh;
  // By rank; workers with equal programs share one. Null for workers that `only` leaves out.
  std::vector<std::shared_ptr<const ir::Program>> programs;
  // The layouts of the program's inputs and results.
  std::vector<Layout> params, results;
  std::vector<ir::Shape> param_shapes, result_shapes;  // whole; with the axis "part" if exchanged
};

// Returns the programs of all workers; every one passes the verifier. An error names the op and the axis that
// cannot be split in this way. For a sum that would need other leaves, it also names the numerics.leaves key.
Result<Partition> partition(const ir::Program& program, const PartitionOptions& options);

}  // namespace ostro::spmd
