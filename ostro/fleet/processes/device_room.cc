#include "ostro/fleet/processes/device_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "ostro/fleet/cells/evaluate_cells.h"
#include "ostro/train/step/memory_need.h"
#include "ostro/train/step/remat_table.h"

namespace ostro::fleet {
namespace {

std::string megabytes(int64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

// Arrays of the shapes `shape_of(k)` for k below n: their bytes, and those of their blocks.
struct Blocks {
  int64_t bytes = 0, taken = 0;
  // So many bytes of such arrays in blocks.
  int64_t of(int64_t some) const {
    if (bytes == 0) return some;
    return some + static_cast<int64_t>(static_cast<double>(some) * static_cast<double>(taken - bytes) /
                                       static_cast<double>(bytes));
  }
};

template <typename ShapeOf>
Blocks blocks_of(size_t n, const runtime::Memory& memory, ShapeOf&& shape_of) {
  Blocks out;
  for (size_t k = 0; k < n; ++k) {
    const int64_t bytes = shape_of(k).bytes();
    out.bytes += bytes;
    out.taken += memory.taken(bytes);
  }
  return out;
}

// Sums what programs take.
class Programs {
 public:
  explicit Programs(runtime::Engine& engine) : engine_(engine) {}

  // Returns what is known of the program; its standing bytes are added to `standing`.
  Result<runtime::ExecutableInfo> add(const ir::Program& program,
                                      const runtime::CompileOptions& options = {}) {
    ASSIGN_OR_RETURN(runtime::ExecutableInfo info, engine_.estimate(program, options));
    standing += train::standing_bytes(info, engine_.memory());
    return info;
  }
  int64_t standing = 0;

 private:
  runtime::Engine& engine_;
};

// The parameters of a program behind the model's.
int64_t rows_of(const ir::Program& program, size_t n, const runtime::Memory& memory) {
  int64_t bytes = 0;
  for (size_t i = n; i < program.body.params.size(); ++i)
    bytes += memory.taken(program.body.shape(program.body.params[i]).bytes());
  return bytes;
}

// What a policy of the leaf program takes, and the arithmetic of a leaf under it.
struct Policy {
  std::string name;
  int64_t need = 0;
  double flops = 0;
};

// As the option model.gradient_checkpointing names it.
std::string option_text(const std::string& policy) {
  if (policy == "all") return "true";
  if (policy == "none") return "false";
  return policy == "keep" ? "everything" : policy.substr(std::string("save:").size());
}

// The policies, the worker's own among them, under which it needs `need` bytes.
Result<std::vector<Policy>> policies_of(int64_t need, const Worker& worker) {
  const WorkerPlan& plan = worker.plan();
  std::vector<Policy> out;
  int64_t own = 0;
  for (const std::string& name : train::remat_policies(plan.programs, plan.remat)) {
    ASSIGN_OR_RETURN(const runtime::ExecutableInfo info,
                     plan.engine->estimate(worker.leaf_ir(), train::leaf_options(name)));
    out.push_back({name, train::standing_bytes(info, plan.engine->memory()), info.flops});
    if (name == plan.remat) own = out.back().need;
  }
  for (Policy& policy : out) policy.need += need - own;
  return out;
}

// What is said of policies when `need` bytes do not fit into `room`.
std::string policies_text(int64_t need, int64_t room, const Worker& worker) {
  const auto policies = policies_of(need, worker);
  if (!policies.ok() || policies->empty()) return "";
  const Policy *best = nullptr, *least = &policies->front();
  double now = 0;
  for (const Policy& p : *policies) {
    if (p.name == worker.plan().remat) now = p.flops;
    if (p.need < least->need) least = &p;
    if (p.need <= room && (best == nullptr || p.flops < best->flops)) best = &p;
  }
  if (best == nullptr)
    return fmt::format(" No policy of model.gradient_checkpointing fits: {} takes least, {}.",
                       option_text(least->name), megabytes(least->need));
  const double more = now > 0 ? 100 * (best->flops / now - 1) : 0;
  return fmt::format(
      " model.gradient_checkpointing: {} fits (the same hash): {} for each, {:.0f} % more "
      "arithmetic in a leaf.",
      option_text(best->name), megabytes(best->need), std::max(0.0, more));
}

}  // namespace

Result<int64_t> device_need(const Worker& worker, int64_t leaves, const ir::Program& evaluation) {
  const WorkerPlan& plan = worker.plan();
  const runtime::Memory& memory = plan.engine->memory();
  const int64_t rank = worker.rank();
  const auto of = [&](const spmd::Partition& part) -> const ir::Program& {
    return *part.programs[static_cast<size_t>(rank)];
  };
  const train::WorkerLoad load = worker.load(leaves);
  const Blocks owned =
      blocks_of(plan.arrays.size(), memory, [&](size_t k) { return plan.owned_shape(k, rank); });
  const Blocks used = blocks_of(plan.trained, memory, [&](size_t k) { return plan.used_shape(k, rank); });

  Programs programs(*plan.engine);
  const ir::Program& leaf_ir = worker.leaf_ir();
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo leaf,
                   programs.add(leaf_ir, train::leaf_options(plan.remat)));
  const bool joint = plan.update.joint;
  const auto options = [&](size_t arrays) {
    return joint ? runtime::CompileOptions() : train::update_options(arrays);
  };
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo apply,
                   programs.add(of(plan.update.apply), options(plan.arrays.size() + plan.trained)));
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo measure, programs.add(of(plan.update.measure)));
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo report, programs.add(of(plan.update.report)));
  if (const std::optional<int64_t> other = plan.mirror_of(rank); other && !joint) {
    ASSIGN_OR_RETURN(const ir::Program mirror, mirrored_apply(plan, *other));
    RETURN_IF_ERROR(
        programs.add(mirror, options(plan.mirrored.size() + static_cast<size_t>(plan.mirrored_gradients()))));
  }
  std::vector<ir::Shape> sums;
  for (size_t k = 0; k < plan.trained; ++k) sums.push_back(plan.used_shape(k, rank));
  if (load.partials > 1)
    RETURN_IF_ERROR(programs.add(train::add_program(sums), train::add_options(sums.size())));
  if (plan.options.slice_partials > 0)
    RETURN_IF_ERROR(programs.add(train::round_program(sums), train::add_options(sums.size())));

  ASSIGN_OR_RETURN(const spmd::Partition parts, CellEvaluator::partition(plan, evaluation, rank));
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo held_out, plan.engine->estimate(of(parts), {}));
  // New cells of a joint update are in the load.
  const int64_t in_step = used.of(load.gathered + load.gradients) + rows_of(leaf_ir, plan.n, memory) +
                          (joint ? 0 : apply.fresh_bytes) + measure.fresh_bytes + report.fresh_bytes +
                          load.leaves * std::max<int64_t>(0, leaf.fresh_bytes - used.taken);
  const int64_t in_evaluation =
      train::standing_bytes(held_out, memory) + rows_of(of(parts), plan.n, memory) + held_out.fresh_bytes;
  return owned.of(load.owned + load.copies + load.renewed) + programs.standing +
         std::max(in_step, in_evaluation) + train::code_bytes(memory);
}

Status check_device_room(int64_t need, const Worker& worker, int64_t sharers) {
  const runtime::Memory& memory = worker.plan().engine->memory();
  if (&memory == &runtime::host_memory()) return Status();
  const AvailableMemory room = memory.available();
  if (room.bytes == 0 || need <= room.bytes / sharers) return Status();
  const std::string takes =
      sharers == 1
          ? fmt::format("this worker takes {} in a step", megabytes(need))
          : fmt::format("each of the {} workers that share it takes {} in a step", sharers, megabytes(need));
  return device_error(fmt::format(
      "a step does not fit into the memory of {}: {}, and {} can be had ({}).{} Workers take less with "
      "trainer.mesh.exchange: layer, too (the same hash); fewer of them share a GPU with --devices, and some "
      "may be on cpu",
      memory.name(), takes, megabytes(room.bytes), room.source,
      policies_text(need, room.bytes / sharers, worker)));
}

Result<MeshNeed> mesh_need(const WorkerPlan& plan, int64_t leaves, const ir::Program& evaluation,
                           int64_t sharers) {
  MeshNeed most;
  int64_t rank = 0;  // of the worker that needs most
  train::WorkerLoad before;
  for (int64_t r = 0; r < plan.mesh().size(); ++r) {
    const Worker worker(plan, r);
    const train::WorkerLoad load = worker.load(leaves);
    if (r > 0 && load == before) continue;
    before = load;
    ASSIGN_OR_RETURN(const int64_t need, device_need(worker, leaves, evaluation));
    if (need > most.bytes) most.bytes = need, rank = r;
  }
  most.fits = check_device_room(most.bytes, Worker(plan, rank), sharers);
  return most;
}

}  // namespace ostro::fleet
