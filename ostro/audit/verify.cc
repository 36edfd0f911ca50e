#include "ostro/audit/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "ostro/audit/record/initial.h"
#include "ostro/audit/record/recorded_run.h"
#include "ostro/audit/record/witness.h"
#include "ostro/base/log.h"
#include "ostro/chain/data_record.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/fleet/threads/workers.h"
#include "ostro/io/files/path.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/fingerprints.h"
#include "ostro/train/step/reference.h"
#include "ostro/train/step/run_data.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::audit {
namespace {

// The roots of the chain against those of the stores, whose hashes are the chain's. Those of an earlier entry
// are among those of the last (periods_of).
Status check_roots(const chain::Chain& chain, const batches::DataSet& stores, const std::string& chain_path) {
  if (chain.genesis().format == 1) return {};
  ASSIGN_OR_RETURN(const auto roots, stores.roots());
  const std::vector<chain::DataRecord> records = chain::data_records(chain);
  const chain::DataRecord& last = records.back();
  if (roots == last.roots) return {};
  return corrupt(fmt::format("{}: the {} has the data roots {}, the token stores have {}", chain_path,
                             records.size() == 1 ? "genesis" : fmt::format("amend after step {}", last.step),
                             nlohmann::json(last.roots).dump(), nlohmann::json(roots).dump()));
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
  if (differs("batch", recorded.batch, replayed.batch) ||
      differs("tokens", fmt::format("{}", recorded.tokens), fmt::format("{}", replayed.tokens)))
    return false;
  if (differs("loss", fmt::format("{}", recorded.loss), fmt::format("{}", replayed.loss))) {
    report->rest_is_equal = recorded.leaves == replayed.leaves && recorded.state == replayed.state;
    return false;
  }
  return !differs("leaves", recorded.leaves, replayed.leaves) &&
         !differs("state", recorded.state, replayed.state);
}

}  // namespace

Replay::Replay(io::FileSystem& fs, runtime::Engine& engine, std::string directory, VerifyOptions options,
               models::ModelChoices models, RecordedRun run)
    : fs_(fs),
      engine_(engine),
      directory_(std::move(directory)),
      options_(std::move(options)),
      models_(std::move(models)),
      run_(std::move(run)) {}

Result<std::unique_ptr<Replay>> Replay::open(io::FileSystem& fs, runtime::Engine& engine,
                                             const std::string& directory, const VerifyOptions& options,
                                             models::ModelChoices models) {
  ASSIGN_OR_RETURN(RecordedRun run, open_recorded(fs, directory, models, options.stored_programs));
  auto data = train::open_run_data(fs, directory, run.newest(), run.chain, options.cache);
  if (!data.ok()) return of_data(data.error());
  if (const Status whole = data->stores->check_contents(); !whole.ok()) return of_data(whole.error());
  RETURN_IF_ERROR(check_roots(run.chain, *data->stores, io::join_path(directory, chain::kChainFile)));
  std::unique_ptr<Replay> out(new Replay(fs, engine, directory, options, std::move(models), std::move(run)));
  out->opened_ = out->stores_ = data->stores;
  return out;
}

Status Replay::restore(int64_t step) {
  state_ = {};  // frees the memory of the one before
  ASSIGN_OR_RETURN(state_, state_before(fs_, engine_, directory_, run_, step, models_));
  if (!run_.chain.genesis().reference || stores_ != opened_) return {};
  ASSIGN_OR_RETURN(stores_, state_.step == 0 ? computed_reference(engine_, run_, *opened_, state_)
                                             : train::with_reference_of(fs_, directory_, opened_));
  return {};
}

// What is replayed is compared with the chain, so nothing is computed twice as it was in the run.
Result<std::unique_ptr<train::StepRunner>> Replay::runner_of(const OpenedPeriod& period, int64_t workers) {
  train::TrainConfig config = period.config;
  config.trainer.cross_check = 0;
  return fleet::make_runner(period.programs, engine_, "none", config, workers);
}

Status Replay::use(const OpenedPeriod& period) {
  if (period_ == &period) return {};
  period_ = nullptr;
  ASSIGN_OR_RETURN(batches::Loader loader, train::make_loader(period.config, stores_));
  loader_ = std::move(loader);
  ASSIGN_OR_RETURN(runner_, runner_of(period, options_.workers));
  period_ = &period;
  return {};
}

Result<std::vector<runtime::Buffer>> Replay::take_params() {
  if (runner_ != nullptr) RETURN_IF_ERROR(runner_->collect(state_, train::StepRunner::Collect::kParameters));
  runner_.reset();
  period_ = nullptr;
  return std::exchange(state_, {}).params;
}

Result<VerifyReport> Replay::stretch(int64_t from_step, int64_t last) {
  const RecordedRun& run = run_;
  if (from_step < 0 || from_step > last || last > run.chain.last_step())
    return invalid_argument(fmt::format("steps {} to {}: the chain of {} has steps 1 to {}", from_step, last,
                                        directory_, run.chain.last_step()));
  // Workers keep their parts of a state from step to step: those of another one are new.
  if (options_.workers > 1) period_ = nullptr;
  RETURN_IF_ERROR(restore(from_step));
  const train::StateArrays arrays = train::state_arrays(run.periods[0].programs);
  VerifyReport report;
  report.unproven = run.unproven;
  report.start_step = state_.step;
  report.last_step = state_.step;
  const int64_t first = state_.step + 1;
  const auto wanted = [&](int64_t step) {
    return std::find(options_.name_steps.begin(), options_.name_steps.end(), step) !=
           options_.name_steps.end();
  };
  if (wanted(state_.step)) {  // what was restored has the name that is known
    ASSIGN_OR_RETURN(const auto tensors,
                     snapshot(state_, arrays, train::cell_boxes(run.period_after(state_.step).config)));
    report.names[state_.step] = checkpoint::state_name(tensors, 2);
  }
  const auto count_amends = [&] {  // of the state's step, which open_run compared
    for (size_t k = 1; k < run.periods.size(); ++k)
      report.entries += run.periods[k].period.first == state_.step;
  };
  if (options_.on_begin && state_.step < last) options_.on_begin(first, last);
  const OpenedPeriod* period = nullptr;
  while (state_.step < last) {
    const int64_t step = state_.step + 1;
    if (const OpenedPeriod* now = &run.period_after(state_.step); now != period) {
      count_amends();
      if (period != nullptr) RETURN_IF_ERROR(runner_->collect(state_, train::StepRunner::Collect::kAll));
      RETURN_IF_ERROR(use(*now));
      period = now;
    }
    if (options_.before_step) RETURN_IF_ERROR(options_.before_step(state_));
    auto batch = loader_->batch(state_.step);
    if (!batch.ok()) return of_data(batch.error());
    ASSIGN_OR_RETURN(const train::StepResult result,
                     runner_->run(state_, train::leaf_arrays(period->config, *batch, state_.step),
                                  scalars_of(*period, state_.step)));
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
      RETURN_IF_ERROR(runner_->collect(state_, train::StepRunner::Collect::kAll));
      ASSIGN_OR_RETURN(const auto tensors, snapshot(state_, arrays, train::cell_boxes(period->config)));
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
    if (options_.on_step) options_.on_step(step, first, last);
  }
  count_amends();
  report.equal = true;
  return report;
}

Result<VerifyReport> verify_run(io::FileSystem& fs, runtime::Engine& engine, const std::string& directory,
                                const VerifyOptions& options, models::ModelChoices models) {
  ASSIGN_OR_RETURN(const auto replay, Replay::open(fs, engine, directory, options, std::move(models)));
  return replay->stretch(options.from_step, options.to_step.value_or(replay->run().chain.last_step()));
}

}  // namespace ostro::audit
