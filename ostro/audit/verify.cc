#include "ostro/audit/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/audit/initial.h"
#include "ostro/audit/recorded_run.h"
#include "ostro/audit/witness.h"
#include "ostro/base/log.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/fleet/workers/workers.h"
#include "ostro/io/files/path.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/fingerprints.h"
#include "ostro/train/step/reference.h"
#include "ostro/train/step/run_data.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::audit {
namespace {

// The roots of the genesis against those of the stores, whose hashes are the genesis's.
Status check_roots(const chain::GenesisEntry& genesis, const batches::DataSet& stores,
                   const std::string& chain_path) {
  if (genesis.format == 1) return {};
  ASSIGN_OR_RETURN(const auto roots, stores.roots());
  if (roots == genesis.data_roots) return {};
  return corrupt(fmt::format("{}: the genesis has the data roots {}, the token stores have {}", chain_path,
                             nlohmann::json(genesis.data_roots).dump(), nlohmann::json(roots).dump()));
}

// What is wrong with the data at hand says nothing of the run.
Error of_data(const Error& error) {
  return error.code() == ErrorCode::kCorrupt ? io_error(error.message()) : error;
}

// The newest checkpoint at or before `step` that the chain records and that is what it says, else the initial
// state. Others are passed over with a warning.
Result<train::State> state_before(io::FileSystem& fs, runtime::Engine& engine, const std::string& directory,
                                  const RecordedRun& run, int64_t step, const models::ModelChoices& models) {
  ASSIGN_OR_RETURN(const auto entries, checkpoint::list_checkpoints(fs, directory + "/checkpoints"));
  const Witness witness(run.chain, directory + "/" + chain::kChainFile, models);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->step > step) continue;
    if (run.chain.find_checkpoint(entry->step) == nullptr) continue;  // of its moments the chain says nothing
    Result<train::RestoredState> restored =
        train::load_state(fs, entry->path, train::state_arrays(run.periods[0].programs), witness.checks());
    if (restored.ok()) return std::move(restored->state);
    log_warning(fmt::format("replaying from an older state: {}", restored.error().message()));
  }
  if (const chain::GenesisEntry& genesis = run.chain.genesis(); genesis.initial)
    return load_initial(fs, directory, genesis, train::state_arrays(run.periods[0].programs));
  return train::initial_state(run.periods[0].programs, engine, run.periods[0].config.trainer.seed);
}

// The stores with the reference that the initial state gives, which must be the chain's.
Result<std::shared_ptr<const batches::DataSet>> computed_reference(runtime::Engine& engine,
                                                                   const RecordedRun& run,
                                                                   const batches::DataSet& stores,
                                                                   const train::State& initial) {
  const OpenedPeriod& first = run.periods[0];
  if (!first.programs.reference)
    return corrupt("the run's program.ir has no program that computes the reference");
  ASSIGN_OR_RETURN(
      const train::Reference made,
      train::compute_reference(*first.programs.reference, engine, initial.params, first.config, stores));
  if (const std::string& there = *run.chain.genesis().reference; made.hash != there)
    return corrupt(
        fmt::format("the initial state gives another reference to the pairs: hash {} here, {} in the genesis",
                    made.hash, there));
  return stores.with_scores(made.scores);
}

// Sets what differs between the recorded and the replayed entry of a step.
bool compare(const chain::StepEntry& recorded, const chain::StepEntry& replayed, VerifyReport* report) {
  auto differs = [&](const char* what, std::string a, std::string b) {
    if (a == b) return false;
    report->what = what;
    report->recorded = std::move(a);
    report->replayed = std::move(b);
    report->different_step = recorded.step;
    return true;
  };
  return !(differs("batch", recorded.batch, replayed.batch) ||
           differs("tokens", fmt::format("{}", recorded.tokens), fmt::format("{}", replayed.tokens)) ||
           differs("loss", fmt::format("{}", recorded.loss), fmt::format("{}", replayed.loss)) ||
           differs("leaves", recorded.leaves, replayed.leaves) ||
           differs("state", recorded.state, replayed.state));
}

}  // namespace

Result<VerifyReport> verify_run(io::FileSystem& fs, runtime::Engine& engine, const std::string& directory,
                                const VerifyOptions& options, models::ModelChoices models) {
  ASSIGN_OR_RETURN(const RecordedRun run, open_recorded(fs, directory, models, options.stored_programs));
  const int64_t last = options.to_step.value_or(run.chain.last_step());
  if (options.from_step < 0 || options.from_step > last || last > run.chain.last_step())
    return invalid_argument(fmt::format("steps {} to {}: the chain of {} has steps 1 to {}",
                                        options.from_step, last, directory, run.chain.last_step()));
  auto data = train::open_run_data(fs, directory, run.config, run.chain.genesis(), options.cache);
  if (!data.ok()) return of_data(data.error());
  if (const Status whole = data->stores->check_contents(); !whole.ok()) return of_data(whole.error());
  RETURN_IF_ERROR(
      check_roots(run.chain.genesis(), *data->stores, io::join_path(directory, chain::kChainFile)));
  ASSIGN_OR_RETURN(train::State state, state_before(fs, engine, directory, run, options.from_step, models));
  const OpenedPeriod* period = nullptr;
  std::optional<batches::Loader> loader;
  std::unique_ptr<train::StepRunner> runner;
  std::shared_ptr<const batches::DataSet> stores = data->stores;
  if (run.chain.genesis().reference) {
    ASSIGN_OR_RETURN(stores, state.step == 0 ? computed_reference(engine, run, *stores, state)
                                             : train::with_reference_of(fs, directory, stores));
  }

  const train::StateArrays arrays = train::state_arrays(run.periods[0].programs);
  VerifyReport report;
  report.unproven = run.unproven;
  report.start_step = state.step;
  report.last_step = state.step;
  const int64_t first = state.step + 1;
  const auto wanted = [&](int64_t step) {
    return std::find(options.name_steps.begin(), options.name_steps.end(), step) != options.name_steps.end();
  };
  if (wanted(state.step)) {  // what was restored has the name that is known
    ASSIGN_OR_RETURN(const auto tensors,
                     snapshot(state, arrays, train::cell_boxes(run.period_after(state.step).config)));
    report.names[state.step] = checkpoint::state_name(tensors, 2);
  }
  const auto count_amends = [&] {  // of the state's step, which open_run compared
    for (size_t k = 1; k < run.periods.size(); ++k)
      report.entries += run.periods[k].period.first == state.step;
  };
  if (options.on_begin && state.step < last) options.on_begin(first, last);
  while (state.step < last) {
    const int64_t step = state.step + 1;
    if (const OpenedPeriod* now = &run.period_after(state.step); now != period) {
      count_amends();
      period = now;
      ASSIGN_OR_RETURN(batches::Loader its_loader, train::make_loader(now->config, stores));
      loader = std::move(its_loader);
      if (runner != nullptr) RETURN_IF_ERROR(runner->collect(state, train::StepRunner::Collect::kAll));
      ASSIGN_OR_RETURN(runner,
                       fleet::make_runner(now->programs, engine, "none", now->config, options.workers));
    }
    if (options.before_step) RETURN_IF_ERROR(options.before_step(state));
    auto batch = loader->batch(state.step);
    if (!batch.ok()) return of_data(batch.error());
    ASSIGN_OR_RETURN(
        const train::StepResult result,
        runner->run(
            state, train::leaf_arrays(period->config, *batch, state.step),
            optim::step_scalars(
                period->config.optimizer, state.step, period->config.trainer.num_train_steps,
                train::losses_before(run.chain, state.step, optim::common(period->config.optimizer)))));
    const chain::ChainLink* link = run.chain.find_step(step);
    if (link == nullptr) return corrupt(fmt::format("the chain has no entry for step {}", step));
    report.last_step = step;
    ++report.entries;
    if (!result.ok()) {
      report.different_step = step;
      report.what = "loss";
      report.recorded = "finite";
      report.replayed = "not finite";
      return report;
    }
    if (!compare(std::get<chain::StepEntry>(link->entry),
                 train::step_entry(step, result, batches::batch_fingerprint(*batch), run.paths, run.shapes),
                 &report))
      return report;
    const std::string* name = run.chain.find_checkpoint(step);
    report.entries += name != nullptr;
    if (name != nullptr || is_due(period->config, step) || wanted(step)) {
      RETURN_IF_ERROR(runner->collect(state, train::StepRunner::Collect::kAll));
      ASSIGN_OR_RETURN(const auto tensors, snapshot(state, arrays, train::cell_boxes(period->config)));
      report.names[step] = checkpoint::state_name(tensors, 2);
    }
    // The entry of a checkpoint that is due is written before the next step's.
    const std::string recorded = name != nullptr ? *name : "none",
                      replayed = is_due(period->config, step) ? report.names[step] : "none";
    if (recorded != replayed && (name != nullptr || step < run.chain.last_step())) {
      report.different_step = step;
      report.what = "checkpoint";
      report.recorded = recorded;
      report.replayed = replayed;
      return report;
    }
    if (options.on_step) options.on_step(step, first, last);
  }
  count_amends();
  report.equal = true;
  return report;
}

}  // namespace ostro::audit
