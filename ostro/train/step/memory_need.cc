#include "ostro/train/step/memory_need.h"

#include <vector>

#include "ostro/train/programs/leaf_plan.h"

namespace ostro::train {

Result<MemoryNeed> memory_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                               const std::string& remat, int64_t leaves) {
  MemoryNeed need;
  for (const ir::Shape& shape : state_arrays(programs).shapes) need.state += shape.bytes();
  std::vector<ir::Shape> gradients;
  int64_t bytes = 0;
  const ir::Block& leaf = programs.leaf.body;
  for (const size_t i : signatures_of(programs).leaf_results.gradients) {
    gradients.push_back(leaf.shape(leaf.results[i]));
    bytes += gradients.back().bytes();
  }
  need.gradients = live_partials(leaves) * bytes;
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo of_leaf,
                   engine.estimate(programs.leaf, leaf_options(remat)));
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo of_update,
                   engine.estimate(programs.update, update_options(programs)));
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo of_add,
                   engine.estimate(add_program(gradients), add_options(gradients.size())));
  need.leaf = of_leaf.arena_bytes;
  need.update = of_update.arena_bytes;
  need.add = leaves > 1 ? of_add.arena_bytes : 0;
  return need;
}

}  // namespace ostro::train
