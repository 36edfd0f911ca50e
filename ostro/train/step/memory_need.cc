#include "ostro/train/step/memory_need.h"

#include <algorithm>
#include <vector>

#include "ostro/train/programs/leaf_plan.h"
#include "ostro/train/programs/mfu.h"
#include "ostro/train/step/evaluate.h"

namespace ostro::train {
namespace {

// Whether a checkpoint is written before the last step by the kept policies. Those by time are not known.
bool saves_on_the_way(const TrainConfig& config) {
  const int64_t last = config.trainer.num_train_steps;
  return std::any_of(config.trainer.checkpointer.keep.begin(), config.trainer.checkpointer.keep.end(),
                     [&](const KeepOptions& keep) { return keep.every < last; });
}

Status add_arena(runtime::Engine& engine, const ir::Program& program, const runtime::CompileOptions& options,
                 MemoryNeed& need) {
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo info, engine.estimate(program, options));
  need.arenas += info.arena_bytes;
  return {};
}

}  // namespace

Result<MemoryNeed> step_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                             const TrainConfig& config, int64_t leaves) {
  MemoryNeed need;
  need.base = resident_memory().now;
  for (const ir::Shape& shape : state_arrays(programs).shapes) need.state += shape.bytes();
  std::vector<ir::Shape> gradients;
  int64_t bytes = 0;
  const ir::Block& leaf = programs.leaf.body;
  for (const size_t i : signatures_of(programs).leaf_results.gradients) {
    gradients.push_back(leaf.shape(leaf.results[i]));
    bytes += gradients.back().bytes();
  }
  need.gradients = live_partials(leaves) * bytes;
  ASSIGN_OR_RETURN(const std::string remat, config.model_options().remat());
  RETURN_IF_ERROR(add_arena(engine, programs.leaf, leaf_options(remat), need));
  RETURN_IF_ERROR(add_arena(engine, programs.update, update_options(programs), need));
  if (leaves > 1)
    RETURN_IF_ERROR(add_arena(engine, add_program(gradients), add_options(gradients.size()), need));
  return need;
}

Result<MemoryNeed> memory_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                               const TrainConfig& config, int64_t vocab) {
  const std::vector<int64_t> sizes = sizes_from(config.trainer.train_batch_size, 0);
  const int64_t leaves = *std::max_element(sizes.begin(), sizes.end()) / *config.numerics.leaf_examples;
  ASSIGN_OR_RETURN(MemoryNeed need, step_need(programs, engine, config, leaves));
  RETURN_IF_ERROR(add_arena(engine, held_out_program(config, vocab), {}, need));
  need.saving = saves_on_the_way(config) ? need.state : 0;
  constexpr int64_t kLeast = int64_t{12} << 20, kMost = int64_t{64} << 20;
  need.beside = kLeast + std::min(kMost, need.state / 2);
  return need;
}

}  // namespace ostro::train
