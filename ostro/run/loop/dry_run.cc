#include "ostro/run/loop/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ostro/base/machine.h"
#include "ostro/base/units.h"
#include "ostro/batches/loader/loader.h"
#include "ostro/fleet/processes/device_room.h"
#include "ostro/fleet/threads/workers.h"
#include "ostro/run/loop/fit.h"
#include "ostro/run/loop/reporter.h"
#include "ostro/run/report/forecast.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/evaluate.h"
#include "ostro/train/step/remat_table.h"

namespace ostro::run {
namespace {

std::string info_line(const char* name, const runtime::ExecutableInfo& i) {
  return fmt::format(
      "  {:<8}arena {:.1f} MiB, inputs {:.1f} MiB, results {:.1f} MiB, {:.2f} GFLOP, {} generated kernels, "
      "{} built-in ops\n",
      name, mib(i.arena_bytes), mib(i.input_bytes), mib(i.output_bytes), i.flops * 1e-9, i.kernels,
      i.fallback_ops);
}

Result<std::string> mesh_line(const train::TrainConfig& config, int64_t workers, int64_t leaves) {
  std::string text = fmt::format("mesh: {} worker{}", workers, workers == 1 ? "" : "s");
  int64_t others = 1;  // workers that share a leaf
  if (workers > 1) {
    ASSIGN_OR_RETURN(const ir::Sharding sharding, train::sharding_for(config.trainer.sharding, workers));
    for (const ir::Axis& axis : sharding.mesh.axes) text += fmt::format(", {} {}", axis.name, axis.size);
    others = workers / static_cast<int64_t>(sharding.mesh.peers(0, train::kLeafPeers).size());
  }
  return text + fmt::format("; {} leaves of {} sequences a step, so at most {} workers are of use\n", leaves,
                            *config.numerics.leaf_examples, leaves * others);
}

std::string bytes_text(int64_t bytes) { return fmt::format("{} bytes ({:.2f} MiB)", bytes, mib(bytes)); }

// Workers with the same load share their lines.
std::string load_lines(const std::vector<train::WorkerLoad>& loads) {
  std::string out;
  for (size_t first = 0, end; first < loads.size(); first = end) {
    const train::WorkerLoad& l = loads[first];
    for (end = first + 1; end < loads.size() && loads[end] == l;) ++end;
    const std::string who = end - first == 1 ? fmt::format("worker {}", first)
                                             : fmt::format("workers {} to {}, each", first, end - 1);
    out += fmt::format("  {}: {} leaves; holds\n", who, l.leaves);
    const auto line = [&](int64_t bytes, const std::string& what) {
      if (bytes > 0) out += fmt::format("    {:>32}  {}\n", bytes_text(bytes), what);
    };
    line(l.owned, "that it updates: its cells of the parameters and of the optimizer's arrays");
    line(l.copies, "copies of another worker's cells");
    line(l.renewed, "new cells beside the old ones, during the update");
    line(l.gathered, "whole parameters, during the leaves");
    line(l.gradients, fmt::format("gradients, at most, with {} partial sums", l.partials));
    line(l.layer_parameters, "parameters of one layer or table, gathered inside the leaf program, at most");
    line(l.layer_gradients, "gradients of one layer or table, inside the leaf program, at most");
    if (l.sent.empty()) continue;
    out += "    sends a step\n";
    for (const train::Sent& s : l.sent) line(s.bytes, fmt::format("{} x {}", s.times, s.what));
    line(l.total_sent(), "together");
    line(l.total_between(), "of these to workers of other slices");
  }
  return out;
}

// What the workers hold and send, with the schedule of the configuration, then with the other one.
Result<std::string> schedules_text(const train::CanonicalPrograms& programs, runtime::Engine& engine,
                                   const std::string& remat, const train::TrainConfig& config,
                                   int64_t workers, int64_t leaves, const std::vector<std::string>& slices) {
  std::string out;
  ASSIGN_OR_RETURN(fleet::WorkerOptions options, fleet::worker_options(config, workers, slices));
  for (const bool configured : {true, false}) {
    if (!configured)
      options.exchange = options.exchange == train::ExchangeSchedule::kStep ? train::ExchangeSchedule::kLayer
                                                                            : train::ExchangeSchedule::kStep;
    const std::string name = train::option_names(options.exchange)[static_cast<size_t>(options.exchange)];
    const auto loads = fleet::mesh_loads(programs, engine, remat, options, leaves);
    if (!loads.ok()) {
      if (configured) return loads.error();
      out += fmt::format("trainer.mesh.exchange: {} is not possible: {}\n", name, loads.error().message());
      continue;
    }
    out += fmt::format("trainer.mesh.exchange: {}{}; arena of a leaf on worker 0: {}\n", name,
                       configured ? " (this config)" : "", bytes_text(loads->leaf_arena));
    out += load_lines(loads->workers);
    int64_t between = 0;
    for (const train::WorkerLoad& load : loads->workers) between += load.total_between();
    if (between > 0) out += fmt::format("  between slices, all workers together: {}\n", bytes_text(between));
  }
  return out;
}

// What is trained, if that is not all, and what it saves beside training all of the model.
std::string frozen_line(const train::TrainConfig& config, int64_t vocab, const models::ModelFunctions& model,
                        int64_t state) {
  if (model.trained() == model.paths.size()) return "";
  int64_t trained = 0, all = 0, gradients = 0;
  for (size_t k = 0; k < model.paths.size(); ++k) {
    all += model.shapes[k].count();
    if (k >= model.trained()) continue;
    trained += model.shapes[k].count();
    gradients += model.shapes[k].bytes();
  }
  const models::ModelFunctions full = train::base_model(config, vocab, train::ModelUse::kTraining);
  int64_t full_state = 0, full_gradients = 0;
  for (const ir::Shape& s : train::state_arrays(config, full).shapes) full_state += s.bytes();
  for (const ir::Shape& s : full.shapes) full_gradients += s.bytes();
  return fmt::format(
      "trained: {} of them ({:.3g} %); the others are held as {}. Parameters, the optimizer's arrays and one "
      "set of gradients: {:.1f} MiB; of the whole model: {:.1f} MiB\n",
      trained, 100 * static_cast<double>(trained) / static_cast<double>(all),
      ir::dtype_name(model.shapes.back().dtype), mib(state + gradients), mib(full_state + full_gradients));
}

// Nothing for a model that is no mixture.
std::string experts_line(const models::ModelFunctions& model, const models::ExpertsUsed& used) {
  if (used.experts == 0) return "";
  int64_t of_experts = 0, all = 0;
  for (size_t k = 0; k < model.shapes.size(); ++k) {
    all += model.shapes[k].count();
    if (model.matrix_of[k].of_experts) of_experts += model.shapes[k].count();
  }
  const int64_t active = models::active_parameters(model, used);
  return fmt::format(
      "experts: {} in each layer that has them, {} for a token. They have {} parameters. A token needs {} of "
      "all ({:.1f} %)\n",
      used.experts, used.per_token, of_experts, active,
      100 * static_cast<double>(active) / static_cast<double>(all));
}

// How long the run takes if programs reach a usual share of the machine's peak.
std::string time_line(const train::TrainConfig& config, double peak, double step) {
  return fmt::format(
      "time: about {} a step, {} in all, without evaluation (an estimate: half of this machine's {:.0f} "
      "GFLOP/s; ostro train says it again after its first leaf)\n",
      span_text(step), span_text(step * static_cast<double>(config.trainer.num_train_steps)), peak * 1e-9);
}

// The checkpoints of a whole run that are kept for good, and how many steps an audit replays from them.
struct KeptCheckpoints {
  int64_t count = 0;
  int64_t longest = 0;  // of the ways to a step from the checkpoint before it
  double replayed = 0;  // these ways, summed over all steps
};

KeptCheckpoints kept_checkpoints(const train::TrainConfig& config) {
  const int64_t steps = config.trainer.num_train_steps;
  KeptCheckpoints kept;
  int64_t before = 0;
  for (int64_t step = 1; step <= steps; ++step) {
    kept.replayed += static_cast<double>(step - before);
    kept.longest = std::max(kept.longest, step - before);
    if (step == steps || config.trainer.checkpointer.is_kept(step)) ++kept.count, before = step;
  }
  return kept;
}

// What the checkpoints that are kept mean for an audit: from which of them a step is replayed.
// `seconds_a_step`: 0 where it is not known.
std::string audit_line(const KeptCheckpoints& kept, int64_t steps, int64_t state, double seconds_a_step) {
  const auto count = [&](double of_steps) {
    return fmt::format("{:.0f} step{}{}", of_steps, of_steps == 1 ? "" : "s",
                       seconds_a_step > 0 ? " (about " + span_text(of_steps * seconds_a_step) + ")" : "");
  };
  return fmt::format(
      "audit: {} checkpoint{} kept for good (trainer.checkpointer.keep), {:.1f} MiB in all. A step that "
      "`ostro verify --sample` draws is replayed from the one before it: at most {}, {} on average\n",
      kept.count, kept.count == 1 ? " is" : "s are", mib(state) * static_cast<double>(kept.count),
      count(static_cast<double>(kept.longest)),
      count(std::round(kept.replayed / static_cast<double>(steps))));
}

// What a run takes of a device's memory at its peak, and of what.
std::string device_text(const train::MemoryNeed& need, const runtime::Memory& memory) {
  return fmt::format(
      "{:.2f} MiB to be allocated on {} at the peak of a run: {:.2f} MiB of state, {:.2f} of gradients, "
      "{:.2f} of programs, {:.2f} of batches, results and evaluation. {:.2f} MiB of state more while a "
      "checkpoint is copied beside steps, where there is room. Compiled programs are not counted; {:.0f} "
      "MiB are left for them",
      mib(need.total()), memory.name(), mib(need.state), mib(need.gradients), mib(need.arenas),
      mib(need.beside), mib(need.state), mib(need.code));
}

std::string room_text(const AvailableMemory& room, const Status& fits) {
  if (room.bytes == 0) return "how much can be had is not known";
  return fmt::format("{:.1f} MiB can be had ({}): it {}", mib(room.bytes), room.source,
                     fits.ok() ? "fits" : "does not fit");
}

}  // namespace

Result<DryRun> dry_run(io::FileSystem& fs, runtime::Engine& engine, const train::TrainConfig& config,
                       int64_t workers, int64_t sharers, const data::BuildSettings& build, int64_t from_step,
                       const std::vector<std::string>& slices) {
  RETURN_IF_ERROR(config.check_leaf_examples(from_step));
  ASSIGN_OR_RETURN(const train::DataAccess data, train::open_data(fs, config, build));
  ASSIGN_OR_RETURN(const batches::Loader loader,
                   train::make_loader(config, data.stores, config.trainer.num_train_steps));
  const auto model = train::run_model(config, data.tokenizer->vocab_size());
  RETURN_IF_ERROR(train::check_vocabulary(model, data.tokenizer->vocab_size()));
  ASSIGN_OR_RETURN(const train::CanonicalPrograms programs, train::make_programs(config, model));
  const int64_t vocab = data.tokenizer->vocab_size();
  ASSIGN_OR_RETURN(const train::MemoryNeed need, train::memory_need(programs, engine, config, vocab));
  ASSIGN_OR_RETURN(const std::string remat, config.model_options().remat());
  ASSIGN_OR_RETURN(const auto runner, fleet::make_runner(programs, engine, remat, config, workers, slices));

  int64_t parameters = 0;
  for (const ir::Shape& s : model.shapes) parameters += s.count();
  const batches::BatchSchedule& schedule = loader.schedule();
  const int64_t leaves = schedule.largest() / *config.numerics.leaf_examples;
  const int64_t tokens = schedule.largest() * config.example_positions();
  int64_t state = 0;
  for (const ir::Shape& s : train::state_arrays(programs).shapes) state += s.bytes();
  std::string out =
      fmt::format("parameters: {} ({:.1f} MiB in f32; with the optimizer's arrays {:.1f} MiB)\n", parameters,
                  mib(parameters * 4), mib(state));
  out += experts_line(model, config.model_options().experts_used());
  out += frozen_line(config, data.tokenizer->vocab_size(), model, state);
  for (size_t i = 0; i < model.paths.size(); ++i)
    out += fmt::format("  {:<35} {}\n", model.paths[i], model.shapes[i].str());
  ASSIGN_OR_RETURN(const std::string mesh, mesh_line(config, workers, leaves));
  out += mesh;
  const std::vector<train::WorkerLoad> loads = runner->loads(leaves);
  if (workers == 1) {
    out += load_lines(loads);
  } else {
    ASSIGN_OR_RETURN(const std::string both,
                     schedules_text(programs, engine, remat, config, workers, leaves, slices));
    out += both;
  }
  out += "memory and arithmetic of one run of each program, on worker 0:\n" +
         info_line("leaf", runner->leaf_info()) + info_line("update", runner->update_info());
  const ir::Program* leaf = runner->leaf_program();
  ASSIGN_OR_RETURN(const std::string policies,
                   train::remat_table(programs, engine, leaf != nullptr ? *leaf : programs.leaf, remat,
                                      loads[0], runner->update_info().arena_bytes));
  out += policies;
  for (const auto& stage : config.trainer.train_batch_size.stages)
    if (!schedule.is_constant())
      out += fmt::format("from step {}: {} sequences a step, {} leaves; before it {} sequences\n", stage.step,
                         stage.value, stage.value / *config.numerics.leaf_examples,
                         schedule.first_example(stage.step));
  out +=
      fmt::format("{}step: {} tokens, {:.2f} GFLOP in the leaves\n", schedule.is_constant() ? "" : "largest ",
                  tokens, runner->leaf_info().flops * static_cast<double>(leaves) * 1e-9);
  for (size_t i = 0; i < data.stores->parts().size(); ++i) {
    const auto& stream = loader.reader(i).stream();
    const std::string& name = loader.component_name(i);
    out += fmt::format("data{}{}: {} tokens in {} documents", name.empty() ? "" : " ", name, stream.tokens(),
                       stream.rows());
    const auto used = loader.use(config.trainer.num_train_steps);
    const auto use = std::find_if(used.begin(), used.end(), [&](const auto& u) { return u.name == name; });
    if (use == used.end())
      out += "; for evaluation only\n";
    else if (name.empty())
      out += fmt::format(", {} sequences of {}; the run sees examples 0 to {}, {:.2f} epochs\n",
                         use->sequences, config.model_options().seq_len(), use->examples - 1, use->epochs());
    else
      out += fmt::format(", {} sequences of {}; the run sees {} examples of it, {:.2f} epochs\n",
                         use->sequences, config.model_options().seq_len(), use->examples, use->epochs());
    constexpr double kManyEpochs = 40;  // after so many a model learns its texts by heart
    if (use != used.end() && use->epochs() > kManyEpochs)
      out +=
          fmt::format("  warning: each of these texts is seen {:.0f} times; use more text or fewer steps\n",
                      use->epochs());
    ASSIGN_OR_RETURN(const batches::PackCounts packing, loader.reader(i).packing());
    if (const std::string text = batches::left_out_text(packing); !text.empty())
      out += fmt::format("  {}\n", text);
  }
  out += fmt::format("program hash: {}\ndata hash: {}\ntokenizer hash: {}\n", train::programs_hash(programs),
                     data.data_hash, data.tokenizer_hash);
  const double flops = runner->leaf_info().flops * static_cast<double>(leaves) + runner->update_info().flops;
  constexpr double kShare = 0.5;  // of the peak; models of some million parameters reach it, tiny ones less
  const double peak = engine_peak(engine, train::precision(config));
  const double seconds = peak > 0 ? flops / (peak * kShare) : 0;
  if (peak > 0) out += time_line(config, peak, seconds);
  const int64_t steps = config.trainer.num_train_steps;
  const KeptCheckpoints kept = kept_checkpoints(config);
  out += audit_line(kept, steps, state, seconds);
  Cost cost;
  const double all_leaves = static_cast<double>(schedule.first_example(steps)) /
                            static_cast<double>(*config.numerics.leaf_examples);
  cost.flops =
      runner->leaf_info().flops * all_leaves + runner->update_info().flops * static_cast<double>(steps);
  cost.seconds = peak > 0 ? cost.flops / (peak * kShare) : 0;
  cost.memory = need.peak();
  cost.files = state * kept.count;
  const runtime::Memory& memory = engine.memory();
  const bool on_host = &memory == &runtime::host_memory();
  if (workers > 1 && on_host) return DryRun{out, cost, state, seconds, Status()};
  if (workers > 1) {
    ASSIGN_OR_RETURN(const fleet::WorkerOptions options, fleet::worker_options(config, workers, slices));
    ASSIGN_OR_RETURN(const fleet::WorkerPlan plan, fleet::make_worker_plan(programs, engine, remat, options));
    ASSIGN_OR_RETURN(const fleet::MeshNeed most,
                     fleet::mesh_need(plan, leaves, train::held_out_program(config, vocab), sharers));
    out += fmt::format(
        "memory: {:.1f} MiB needed on {} by each of the {} workers that share it, with room for compiled "
        "programs; {}\n",
        mib(most.bytes), memory.name(), sharers, room_text(memory.available(), most.fits));
    return DryRun{out, cost, state, seconds, most.fits};
  }
  const Status fits = check_fit(config, need, vocab, engine);
  std::string where = fmt::format("{:.1f} MiB to be allocated", mib(need.total()));
  if (on_host)
    where = fmt::format("{:.1f} MiB at the peak of the process: {:.1f} MiB that it has now, {}",
                        mib(need.peak()), mib(need.base), where);
  else
    where = device_text(need, memory);
  if (on_host && need.saving > 0)
    where += fmt::format(" ({:.1f} MiB while a checkpoint is written)", mib(need.saving));
  out += fmt::format("memory: {}; {}\n", where, room_text(memory.available(), fits));
  return DryRun{out, cost, state, seconds, fits};
}

}  // namespace ostro::run
