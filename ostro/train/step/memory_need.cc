#include "ostro/train/step/memory_need.h"

#include <algorithm>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/checkpoint/save.h"
#include "ostro/train/programs/leaf_plan.h"
#include "ostro/train/programs/mfu.h"
#include "ostro/train/step/evaluate.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::train {
namespace {

// Whether a checkpoint is written before the last step by the kept policies. Those by time are not known.
bool saves_on_the_way(const TrainConfig& config) {
  const int64_t last = config.trainer.num_train_steps;
  return std::any_of(config.trainer.checkpointer.keep.begin(), config.trainer.checkpointer.keep.end(),
                     [&](const KeepOptions& keep) { return keep.every < last; });
}

// The buffers of the largest cells while a checkpoint is written: of each that is written at a time a piece
// and its file.
int64_t write_buffers(const CanonicalPrograms& programs, const TrainConfig& config) {
  int64_t largest = 0;
  for (const checkpoint::TensorSpec& tensor : state_tensors(state_arrays(programs), cell_boxes(config))) {
    int64_t cell = checkpoint::dtype_size(tensor.dtype);
    for (const int64_t extent : checkpoint::cell_extents(tensor)) cell *= extent;
    largest = std::max(largest, cell);
  }
  const checkpoint::SaveOptions save;
  return 2 * save.threads * std::min(largest, save.max_chunk_bytes);
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
  if (config.numerics.slice_partials > 0)
    RETURN_IF_ERROR(add_arena(engine, round_program(gradients), add_options(gradients.size()), need));
  return need;
}

// An evaluation or the last checkpoint comes when gradients are not needed. But their blocks are kept for
// reuse, unless they are so many that the first block of another size frees them.
Result<MemoryNeed> memory_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                               const TrainConfig& config, int64_t vocab) {
  const std::vector<int64_t> sizes = sizes_from(config.trainer.train_batch_size, 0);
  const int64_t leaves = *std::max_element(sizes.begin(), sizes.end()) / *config.numerics.leaf_examples;
  ASSIGN_OR_RETURN(MemoryNeed need, step_need(programs, engine, config, leaves));
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo evaluation,
                   engine.estimate(held_out_program(config, vocab), {}));
  const bool on_host = &engine.memory() == &runtime::host_memory();
  const int64_t kept = on_host && need.gradients > static_cast<int64_t>(kKeptUnasked) ? 0 : need.gradients;
  const int64_t writing = on_host ? write_buffers(programs, config) : 0;
  const int64_t after_steps = kept + std::max(evaluation.arena_bytes, writing);
  constexpr int64_t kAlways = int64_t{16} << 20;  // panels of products, batches, code; measured
  need.saving = saves_on_the_way(config) ? need.state + writing : 0;
  need.beside = kAlways + std::max<int64_t>(0, after_steps - need.gradients);
  return need;
}

}  // namespace ostro::train
