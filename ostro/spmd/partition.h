// partition: one Program -> one Program per worker of a mesh, which together give the same bits. A local
// rewrite of each op: local sizes, shifted origins, and a collective where an axis that the op sums over is
// split (docs/spmd.md).
#pragma once

#include <memory>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"
#include "ostro/spmd/layout.h"

namespace ostro::spmd {

struct PartitionOptions {
  ir::Sharding sharding;
  Cells cells;  // numerics.cells
  // One per parameter and per result of the program.
  std::vector<Role> params, results;
  // Of every value in between: kActivation for a leaf program; kParameter for an optimizer's update, which
  // works on parameters alone.
  Role values = Role::kActivation;
};

struct Partition {
  ir::Mesh mesh;
  // By rank; workers with equal programs share one.
  std::vector<std::shared_ptr<const ir::Program>> programs;
  // Where the program's inputs and results lie.
  std::vector<Layout> params, results;
  std::vector<ir::Shape> param_shapes, result_shapes;  // whole
};

// Every program passes the verifier. An error names the op and the axis that cannot be split so, and for a
// sum that needs other leaves the numerics.leaves key.
Result<Partition> partition(const ir::Program& program, const PartitionOptions& options);

}  // namespace ostro::spmd
