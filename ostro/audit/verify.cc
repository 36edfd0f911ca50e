#include "ostro/audit/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/audit/amend.h"
#include "ostro/audit/initial.h"
#include "ostro/audit/witness.h"
#include "ostro/base/log.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/chain.h"
#include "ostro/chain/origin.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/fleet/workers/workers.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/fingerprints.h"
#include "ostro/train/step/reference.h"
#include "ostro/train/step/run_data.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::audit {
namespace {

// A period of the run with all that its steps follow from.
struct OpenedPeriod {
  Period period;
  train::TrainConfig config;
  train::CanonicalPrograms programs;
};

struct Opened {
  chain::Chain chain;
  std::vector<OpenedPeriod> periods;
  std::vector<std::string> paths;
  std::vector<ir::Shape> shapes;
  train::DataAccess data;

  // That of the step after `step` steps.
  const OpenedPeriod& period_after(int64_t step) const {
    size_t i = periods.size() - 1;
    while (i > 0 && periods[i].period.first > step) --i;
    return periods[i];
  }
};

// The programs of that hash, parameters and all.
Result<train::CanonicalPrograms> read_programs(io::FileSystem& fs, const std::string& path,
                                               const std::string& hash) {
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  auto programs = train::parse_programs(text);
  if (!programs.ok()) return programs.error().with_context(path);
  if (train::programs_hash(*programs) != hash)
    return corrupt(fmt::format("{} is not the program of the chain ({} there, {} here)", path, hash,
                               train::programs_hash(*programs)));
  return programs;
}

// The roots of the genesis against those of the stores, whose hashes are the genesis's.
Status check_roots(const chain::GenesisEntry& genesis, const data::DataSet& stores,
                   const std::string& chain_path) {
  if (genesis.format == 1) return {};
  ASSIGN_OR_RETURN(const auto roots, stores.roots());
  if (roots == genesis.data_roots) return {};
  return corrupt(fmt::format("{}: the genesis has the data roots {}, the token stores have {}", chain_path,
                             nlohmann::json(genesis.data_roots).dump(), nlohmann::json(roots).dump()));
}

Result<Opened> open_run(io::FileSystem& fs, const std::string& directory, const std::string& cache,
                        models::ModelChoices models) {
  const std::string config_path = directory + "/config.yaml",
                    chain_path = directory + "/" + chain::kChainFile;
  ASSIGN_OR_RETURN(const std::string yaml, fs.read_file(config_path));
  ASSIGN_OR_RETURN(const train::TrainConfig config,
                   train::parse_train_config(yaml, config_path, std::move(models)));
  Opened out;
  ASSIGN_OR_RETURN(out.chain, chain::read_chain(fs, chain_path));
  const chain::GenesisEntry& g = out.chain.genesis();
  RETURN_IF_ERROR(chain::check_computable(g, directory));
  ASSIGN_OR_RETURN(const std::vector<Period> periods, periods_of(config, out.chain, chain_path));
  // A process that died behind the chain's last amend leaves the config before it.
  const std::string written = train::canonical_text(config);
  if (std::none_of(periods.begin(), periods.end(), [&](const Period& p) { return p.config == written; }))
    return corrupt(fmt::format("{} is not the config of the chain: {}", config_path,
                               fmt::join(chain::object_differences(periods.back().config, written), "; ")));
  for (size_t k = 0; k < periods.size(); ++k) {
    const Period& period = periods[k];
    ASSIGN_OR_RETURN(
        train::CanonicalPrograms programs,
        read_programs(fs, directory + "/" + program_file(g, period.program_hash), period.program_hash));
    const auto wrong = [&](const Error& e) {
      return corrupt(fmt::format(
          "{}: {}: {}", chain_path,
          k == 0 ? "the genesis" : fmt::format("the amend after step {}", period.first), e.message()));
    };
    auto its_config = config_of_period(config, period.config);
    if (!its_config.ok()) return wrong(its_config.error());
    const Status allowed = k == 0 ? its_config->check_leaf_examples(period.first)
                                  : check_amend(out.periods.back().config, *its_config, period.first);
    if (!allowed.ok()) return wrong(allowed.error());
    const int64_t length = its_config->trainer.num_train_steps,
                  end = k + 1 < periods.size() ? periods[k + 1].first : out.chain.last_step();
    if (end > length)
      return wrong(corrupt(fmt::format("trainer.num_train_steps is {}, but {} steps are done", length, end)));
    out.periods.push_back({period, std::move(*its_config), std::move(programs)});
    train::ParameterList model = train::signatures_of(out.periods.back().programs).model;
    if (out.periods.size() == 1) {
      out.paths = std::move(model.paths), out.shapes = std::move(model.shapes);
    } else if (out.paths != model.paths || out.shapes != model.shapes) {
      return wrong(corrupt("its program has other parameters"));
    }
  }
  if (g.origin && config.trainer.initialize_from)
    RETURN_IF_ERROR(chain::check_origin(fs, *g.origin, *config.trainer.initialize_from));
  ASSIGN_OR_RETURN(out.data, train::open_run_data(fs, directory, config, g, cache));
  RETURN_IF_ERROR(check_roots(g, *out.data.stores, chain_path));
  return out;
}

// The newest checkpoint at or before `step` that the chain records and that is what it says, else the initial
// state. Others are passed over with a warning.
Result<train::State> state_before(io::FileSystem& fs, runtime::Engine& engine, const std::string& directory,
                                  const Opened& run, int64_t step, const models::ModelChoices& models) {
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
Result<std::shared_ptr<const data::DataSet>> computed_reference(runtime::Engine& engine, const Opened& run,
                                                                const train::State& initial) {
  const OpenedPeriod& first = run.periods[0];
  if (!first.programs.reference)
    return corrupt("the run's program.ir has no program that computes the reference");
  ASSIGN_OR_RETURN(const train::Reference made,
                   train::compute_reference(*first.programs.reference, engine, initial.params, first.config,
                                            *run.data.stores));
  if (const std::string& there = *run.chain.genesis().reference; made.hash != there)
    return corrupt(
        fmt::format("the initial state gives another reference to the pairs: hash {} here, {} in the genesis",
                    made.hash, there));
  return run.data.stores->with_scores(made.scores);
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
           differs("loss", chain::hex_float(recorded.loss), chain::hex_float(replayed.loss)) ||
           differs("leaves", recorded.leaves, replayed.leaves) ||
           differs("state", recorded.state, replayed.state));
}

}  // namespace

Result<VerifyReport> verify_run(io::FileSystem& fs, runtime::Engine& engine, const std::string& directory,
                                const VerifyOptions& options, models::ModelChoices models) {
  ASSIGN_OR_RETURN(const Opened run, open_run(fs, directory, options.cache, models));
  const int64_t last = options.to_step.value_or(run.chain.last_step());
  if (options.from_step < 0 || options.from_step > last || last > run.chain.last_step())
    return invalid_argument(fmt::format("steps {} to {}: the chain of {} has steps 1 to {}",
                                        options.from_step, last, directory, run.chain.last_step()));
  ASSIGN_OR_RETURN(train::State state, state_before(fs, engine, directory, run, options.from_step, models));
  const OpenedPeriod* period = nullptr;
  std::optional<data::Loader> loader;
  std::unique_ptr<train::StepRunner> runner;
  std::shared_ptr<const data::DataSet> stores = run.data.stores;
  if (run.chain.genesis().reference) {
    ASSIGN_OR_RETURN(stores, state.step == 0 ? computed_reference(engine, run, state)
                                             : train::with_reference_of(fs, directory, stores));
  }

  const train::StateArrays arrays = train::state_arrays(run.periods[0].programs);
  VerifyReport report;
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
  while (state.step < last) {
    const int64_t step = state.step + 1;
    if (const OpenedPeriod* now = &run.period_after(state.step); now != period) {
      count_amends();
      period = now;
      ASSIGN_OR_RETURN(data::Loader its_loader, train::make_loader(now->config, stores));
      loader = std::move(its_loader);
      if (runner != nullptr) RETURN_IF_ERROR(runner->collect(state, train::StepRunner::Collect::kAll));
      ASSIGN_OR_RETURN(runner,
                       fleet::make_runner(now->programs, engine, "none", now->config, options.workers));
    }
    ASSIGN_OR_RETURN(const data::Batch batch, loader->batch(state.step));
    ASSIGN_OR_RETURN(
        const train::StepResult result,
        runner->run(
            state, train::to_arrays(batch),
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
                 train::step_entry(step, result, data::batch_fingerprint(batch), run.paths, run.shapes),
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
