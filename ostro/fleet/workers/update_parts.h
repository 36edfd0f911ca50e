// The optimizer's update in the parts that workers need: what all of them must agree on, and what each can do
// alone.
#pragma once

#include "ostro/spmd/partition.h"
#include "ostro/train/programs/state_arrays.h"

namespace ostro::fleet {

// The update program of n parameters, cut in three. Together they give its bits.
struct UpdateParts {
  // Gradients, loss sum f64, weight f64 -> loss f32, gradient norm f64, ok bool, and the
  // norms of what is clipped by itself f64. Workers exchange here: a norm is of all its gradients. Who knows
  // the norms can finish the step without the others.
  ir::Program measure;
  // Parameters, the optimizer's arrays, gradients of the trained parameters, weight f64, the optimizer's
  // scalars f32, then what `measure` gives -> parameters, the optimizer's arrays. Of most optimizers this is
  // element by element: no worker needs another one. Of others workers exchange here, too
  // (UpdatePartitions::joint).
  ir::Program apply;
  // Parameters -> n fingerprints, then the experts' loads (expert_loads), whole, for reports.
  ir::Program prints;
};

UpdateParts update_parts(const train::CanonicalPrograms& programs);

// Each partitioned over all axes of the mesh. The parameters of `apply` are the cells that a worker owns.
struct UpdatePartitions {
  spmd::Partition measure, apply, prints;
  // In `apply` workers need each other. Then nobody may overwrite his cells before all have their new ones.
  bool joint = false;
};

// `options` says what is split; its roles are set here. Errors: as of partition().
Result<UpdatePartitions> partition_update(const UpdateParts& parts, const train::UpdateLayout& at,
                                          spmd::PartitionOptions options);

}  // namespace ostro::fleet
