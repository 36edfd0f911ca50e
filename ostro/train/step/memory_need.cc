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

// The blocks of arrays of these shapes.
template <typename Shapes>
int64_t blocks_of(const Shapes& shapes, const runtime::Memory& memory) {
  int64_t bytes = 0;
  for (const ir::Shape& shape : shapes) bytes += memory.taken(shape.bytes());
  return bytes;
}

// `count` parameters of a program, from number `first` on.
std::vector<ir::Shape> params_of(const ir::Program& program, size_t first, size_t count) {
  std::vector<ir::Shape> out;
  for (size_t i = first; i < first + count; ++i) out.push_back(program.body.shape(program.body.params[i]));
  return out;
}

// Plans a program, and adds what it takes to need.arenas.
Result<runtime::ExecutableInfo> add_arena(runtime::Engine& engine, const ir::Program& program,
                                          const runtime::CompileOptions& options, MemoryNeed& need) {
  ASSIGN_OR_RETURN(runtime::ExecutableInfo info, engine.estimate(program, options));
  need.arenas += standing_bytes(info, engine.memory());
  return info;
}

std::vector<ir::Shape> gradients_of(const CanonicalPrograms& programs) {
  std::vector<ir::Shape> gradients;
  const ir::Block& leaf = programs.leaf.body;
  for (const size_t i : signatures_of(programs).leaf_results.gradients)
    gradients.push_back(leaf.shape(leaf.results[i]));
  return gradients;
}

// What a step needs, with what is known of its two large programs.
struct PlannedStep {
  MemoryNeed need;
  runtime::ExecutableInfo leaf, update;
};

Result<PlannedStep> planned_step(const CanonicalPrograms& programs, runtime::Engine& engine,
                                 const TrainConfig& config, int64_t leaves) {
  PlannedStep out;
  MemoryNeed& need = out.need;
  need.base = resident_memory().now;
  need.state = blocks_of(state_arrays(programs).shapes, engine.memory());
  const std::vector<ir::Shape> gradients = gradients_of(programs);
  need.gradients = live_partials(leaves) * blocks_of(gradients, engine.memory());
  ASSIGN_OR_RETURN(const std::string remat, config.model_options().remat());
  ASSIGN_OR_RETURN(out.leaf, add_arena(engine, programs.leaf, leaf_options(remat), need));
  ASSIGN_OR_RETURN(out.update, add_arena(engine, programs.update, update_options(programs), need));
  if (leaves > 1)
    RETURN_IF_ERROR(add_arena(engine, add_program(gradients), add_options(gradients.size()), need));
  if (config.numerics.slice_partials > 0)
    RETURN_IF_ERROR(add_arena(engine, round_program(gradients), add_options(gradients.size()), need));
  return out;
}

// MemoryNeed::beside on a device: the moments of a run with what each has beside the state, less what
// the step's need counts already.
Result<int64_t> beside_on_device(const CanonicalPrograms& programs, runtime::Engine& engine,
                                 const ir::Program& evaluation, int64_t leaves, const PlannedStep& step) {
  const runtime::Memory& memory = engine.memory();
  const auto& [need, leaf, update] = step;
  const Signatures at = signatures_of(programs);
  const int64_t gradients = blocks_of(gradients_of(programs), memory);
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo init, engine.estimate(programs.init, {}));
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo held_out, engine.estimate(evaluation, {}));
  const auto rows_of = [&](const ir::Program& program) {
    const size_t first = at.leaf_params.params.size();
    return blocks_of(params_of(program, first, program.body.params.size() - first), memory);
  };
  const size_t numbers = at.update_params.loss_sum;
  // Results of leaves that are no gradients are read when all leaves have been started.
  const int64_t numbers_of_leaves = leaves * std::max<int64_t>(0, leaf.fresh_bytes - gradients);
  const int64_t in_leaf = need.gradients + need.arenas + rows_of(programs.leaf) + numbers_of_leaves;
  const int64_t in_update =
      gradients + need.arenas + numbers_of_leaves + update.fresh_bytes +
      blocks_of(params_of(programs.update, numbers, programs.update.body.params.size() - numbers), memory);
  const int64_t in_evaluation =
      need.arenas + standing_bytes(held_out, memory) + rows_of(evaluation) + held_out.fresh_bytes;
  const int64_t in_init = standing_bytes(init, memory) + init.fresh_bytes - need.state;
  return std::max({in_leaf, in_update, in_evaluation, in_init}) - need.gradients - need.arenas;
}

}  // namespace

int64_t standing_bytes(const runtime::ExecutableInfo& info, const runtime::Memory& memory) {
  if (&memory == &runtime::host_memory()) return info.arena_bytes;
  return memory.taken(std::max<int64_t>(1, info.arena_bytes)) + info.kept_bytes;
}

int64_t code_bytes(const runtime::Memory& memory) {
  return &memory == &runtime::host_memory() ? 0 : int64_t{16} << 20;
}

Result<MemoryNeed> step_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                             const TrainConfig& config, int64_t leaves) {
  ASSIGN_OR_RETURN(const PlannedStep step, planned_step(programs, engine, config, leaves));
  return step.need;
}

// An evaluation or the last checkpoint comes when gradients are not needed. But on the host their blocks are
// kept for reuse, unless they are so many that the first block of another size frees them.
Result<MemoryNeed> memory_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                               const TrainConfig& config, int64_t vocab) {
  const std::vector<int64_t> sizes = sizes_from(config.trainer.train_batch_size, 0);
  const int64_t leaves = *std::max_element(sizes.begin(), sizes.end()) / *config.numerics.leaf_examples;
  ASSIGN_OR_RETURN(const PlannedStep step, planned_step(programs, engine, config, leaves));
  MemoryNeed need = step.need;
  const ir::Program evaluation = held_out_program(config, vocab);
  if (&engine.memory() != &runtime::host_memory()) {
    ASSIGN_OR_RETURN(need.beside, beside_on_device(programs, engine, evaluation, leaves, step));
    need.code = code_bytes(engine.memory());
    return need;
  }
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo info, engine.estimate(evaluation, {}));
  const int64_t kept = need.gradients > static_cast<int64_t>(kKeptUnasked) ? 0 : need.gradients;
  const int64_t writing = write_buffers(programs, config);
  const int64_t after_steps = kept + std::max(info.arena_bytes, writing);
  constexpr int64_t kAlways = int64_t{16} << 20;  // panels of products, batches, code; measured
  need.saving = saves_on_the_way(config) ? need.state + writing : 0;
  need.beside = kAlways + std::max<int64_t>(0, after_steps - need.gradients);
  return need;
}

}  // namespace ostro::train
