#include "ostro/run/loop/opened_run.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "ostro/audit/record/fork.h"
#include "ostro/audit/record/initial.h"
#include "ostro/audit/record/witness.h"
#include "ostro/base/log.h"
#include "ostro/io/files/path.h"
#include "ostro/lineage/maker.h"
#include "ostro/run/loop/fit.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/other_tokenizer.h"
#include "ostro/train/step/reference.h"
#include "ostro/train/step/run_data.h"
#include "ostro/train/step/step_profile.h"

namespace ostro::run {
namespace {

constexpr std::chrono::milliseconds kWaitForLock{100};
constexpr int kMostWaitsForLock = 3000;  // five minutes

// Where several processes share a run, the leader before this one may be on its way out, or stopped.
Result<std::unique_ptr<io::FileLock>> take_lock(const OpenedRun& run, const Environment& env) {
  const auto lock = [&] {
    return chain::lock_run(env.fs, run.directory, static_cast<int64_t>(run.record.sessions.size()) + 1);
  };
  auto locked = lock();
  for (int i = 0; env.crew != nullptr && !locked.ok() && locked.error().code() == ErrorCode::kBusy; ++i) {
    if (i == 0) log_warning(locked.error().message() + "; waiting for it");
    if ((env.stop && env.stop()) || i >= kMostWaitsForLock) break;
    std::this_thread::sleep_for(kWaitForLock);
    locked = lock();
  }
  return locked;
}

Status check_beginning(const OpenedRun& run, const train::TrainConfig& given) {
  const auto& genesis = run.genesis;
  if (genesis && genesis->fork && given.trainer.initialize_from)
    return invalid_argument(fmt::format(
        "trainer.initialize_from is {}, but {} is a fork, which goes on with the state of the run {} after "
        "step {}; leave it out, or use the fork's own configuration, {}/config.yaml",
        *given.trainer.initialize_from, run.directory, genesis->fork->head, genesis->fork->step,
        run.directory));
  if (genesis && !genesis->fork && genesis->initial.has_value() != given.trainer.initialize_from.has_value())
    return invalid_argument(fmt::format(
        "{} holds a run that began with {}; trainer.initialize_from is {}: {}, or give this run another "
        "trainer.id",
        run.directory, genesis->initial ? "the parameters of a checkpoint" : "parameters that were drawn",
        given.trainer.initialize_from.value_or("null"),
        genesis->initial ? "set it as it was (the checkpoint itself is not needed any more)"
                         : "leave it out"));
  // Before data are made for a config that this run cannot have.
  return genesis ? check_fixed_options(run.directory, genesis->config, given) : given.check_leaf_examples(0);
}

// The step after which the run goes on with the state that the workers have: they are after it, or after the
// next, whose entry the chain lacks. Nothing: there are no such workers, or the chain does not reach so far,
// or it lacks a checkpoint that they cannot save any more.
Result<std::optional<int64_t>> step_of_carried(OpenedRun& run, const Environment& env) {
  if (env.crew == nullptr) return std::optional<int64_t>();
  run.carried = fleet::carried_state(*env.crew);
  if (!run.carried) return std::optional<int64_t>();
  const std::string path = run.file(chain::kChainFile);
  const int64_t live = run.carried->step;
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain_until(env.fs, path, live));
  const int64_t last = chain.last_step();
  const bool knows_last = run.carried->last.ok();
  const bool saved = !audit::is_due(run.config, last) || chain.find_checkpoint(last) != nullptr ||
                     last == run.genesis->step();
  if ((last == live && (saved || knows_last)) || (last == live - 1 && saved && knows_last)) return {last};
  log_warning(
      fmt::format("the workers have the state after step {}, but {} ends at step {}: going on from a "
                  "checkpoint",
                  live, path, last));
  env.crew->forget();
  run.carried.reset();
  return std::optional<int64_t>();
}

// What pairs are compared with. A file that is lost is made again, from the initial state.
Status make_reference(OpenedRun& run, const Environment& env) {
  if (train::dpo_objective(run.config.objective) == nullptr) return Status();
  const auto take = [&](const train::Reference& made) {
    run.reference = made.hash;
    run.data.stores = run.data.stores->with_scores(made.scores);
    return Status();
  };
  const auto& genesis = run.genesis;
  if (genesis) {
    if (!genesis->reference)
      return corrupt(fmt::format("{}: the genesis has no reference, and objective.type is dpo",
                                 run.file(chain::kChainFile)));
    const auto read = train::read_reference(env.fs, run.directory, *run.data.stores, *genesis->reference);
    if (read.ok()) return take(*read);
    if (genesis->fork)
      return read.error().with_context(
          "a fork keeps the reference of its parent, which only the parent can compute; copy the file from "
          "its run directory");
    log_warning(fmt::format("{}; it is computed again", read.error().message()));
  }
  const train::CanonicalPrograms& programs = run.programs;
  std::vector<runtime::Buffer> params;
  if (genesis && genesis->initial) {
    ASSIGN_OR_RETURN(train::State state,
                     audit::load_initial(env.fs, run.directory, *genesis, train::state_arrays(programs)));
    params = std::move(state.params);
  } else {
    ASSIGN_OR_RETURN(const FirstState* first, first_state(run, programs, env));
    params = first->state.params;
  }
  log_info("computing what the initial weights give to the answers of all pairs");
  ASSIGN_OR_RETURN(
      const train::Reference made,
      train::compute_reference(*programs.reference, env.engine, params, run.config, *run.data.stores));
  if (genesis) run.first.reset();
  if (genesis && made.hash != *genesis->reference)
    return corrupt(fmt::format(
        "{}: computed again, the reference has the hash {}, but the run began with {}: other code made it",
        run.directory, made.hash, *genesis->reference));
  RETURN_IF_ERROR(train::write_reference(env.fs, run.directory, *run.data.stores, made));
  return take(made);
}

}  // namespace

Result<const FirstState*> first_state(OpenedRun& run, const train::CanonicalPrograms& programs,
                                      const Environment& env) {
  if (run.first) return &*run.first;
  FirstState out;
  ASSIGN_OR_RETURN(out.state, train::initial_state(programs, env.engine, run.config.trainer.seed));
  if (const auto& from = run.config.trainer.initialize_from) {
    train::warn_of_other_tokenizer(env.fs, "trainer.initialize_from", *from, *run.data.tokenizer,
                                   run.config.data.tokenizer_path());
    const std::string place = run.file(audit::kImportedFolder);
    std::optional<std::string> imported;
    if (env.import_model) {
      ASSIGN_OR_RETURN(imported, env.import_model(*from, place));
    }
    const auto taken = audit::take_parameters(env.fs, run.config, imported.value_or(*from),
                                              train::state_arrays(programs), out.state);
    if (imported) RETURN_IF_ERROR(env.fs.remove_all(place));
    ASSIGN_OR_RETURN(out.origin, taken);
    ASSIGN_OR_RETURN(out.maker, lineage::maker_of(env.fs, *from, out.origin));
  }
  run.first = std::move(out);
  return &*run.first;
}

Result<Resumption> plan_from(const OpenedRun& run, const train::TrainConfig& given, const Environment& env,
                             bool amend, std::optional<int64_t> before) {
  return plan_resume(env.fs, run.directory, *run.genesis, given, run.data, run.model, {amend, before});
}

Result<OpenedRun> open_run(const train::TrainConfig& given, const Environment& env, bool amend) {
  if (env.profile) RETURN_IF_ERROR(train::check_profile(*env.profile, given.trainer.num_train_steps));
  io::FileSystem& fs = env.fs;
  OpenedRun run{given, train::run_directory(given)};
  RETURN_IF_ERROR(fs.make_dirs(run.directory));
  // The text of the lock counts the sessions so far. Their record counts only when it is read behind the
  // lock: a session that the lock was waited for may have ended and said so there.
  if (auto before = chain::read_record(fs, run.file(chain::kRecordFile)); before.ok())
    run.record = std::move(before).value();
  ASSIGN_OR_RETURN(run.lock, take_lock(run, env));
  auto record = chain::read_record(fs, run.file(chain::kRecordFile));
  run.record = record.ok() ? std::move(record).value() : chain::RunRecord();
  if (!record.ok() && record.error().code() != ErrorCode::kNotFound)
    log_warning(fmt::format("the record of earlier sessions is lost: {}", record.error().message()));
  const std::string path = run.file(chain::kChainFile);
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (!exists && amend)
    return not_found(fmt::format("{} holds no run to amend; leave out --amend to begin one", run.directory));
  ASSIGN_OR_RETURN(const bool forks,
                   fs.exists(io::join_path(run.file(audit::kParentFolder), chain::kChainFile)));
  if (!exists && forks)  // it would begin from scratch
    return invalid_argument(
        fmt::format("{} holds a fork whose making was cut off; repeat the ostro fork that began it, or "
                    "remove the directory",
                    run.directory));
  const auto ever = exists ? chain::read_chain(fs, path) : Result<chain::Chain>(chain::Chain());
  run.goodput = std::make_unique<Goodput>(fs, run.directory, ever.ok() ? &*ever : nullptr,
                                          given.trainer.worker_price_per_hour);
  run.goodput->set_workers(env.crew == nullptr ? 1 : env.crew->epoch().size);
  if (exists) {
    ASSIGN_OR_RETURN(const chain::Chain beginning, chain::read_chain_until(fs, path, 0));
    run.genesis = beginning.genesis();
  }
  RETURN_IF_ERROR(check_beginning(run, given));
  ASSIGN_OR_RETURN(const train::TrainConfig made,
                   train::config_of_added_data(fs, run.directory, run.genesis, given));
  ASSIGN_OR_RETURN(run.data, train::open_data(fs, made, env.build));
  const int64_t vocab = run.data.tokenizer->vocab_size();
  run.model = train::run_model(given, vocab);
  RETURN_IF_ERROR(train::check_vocabulary(run.model, vocab));
  if (run.genesis) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> live, step_of_carried(run, env));
    if (live) {
      ASSIGN_OR_RETURN(run.from, plan_takeover(fs, run.directory, *run.genesis, given, run.data, *live));
    } else {
      ASSIGN_OR_RETURN(run.from, plan_from(run, given, env, amend, {}));
    }
    run.config = run.from->config;
  }
  return run;
}

Status prepare(OpenedRun& run, const Environment& env) {
  const train::TrainConfig& config = run.config;
  ASSIGN_OR_RETURN(run.programs, train::make_programs(config, run.model));
  // Several workers share the state, and what each of them has is not planned here.
  if (env.crew == nullptr && !env.make_state && env.workers == 1) {
    const int64_t vocab = run.data.tokenizer->vocab_size();
    ASSIGN_OR_RETURN(run.need, train::memory_need(run.programs, env.engine, config, vocab));
    RETURN_IF_ERROR(check_fit(config, *run.need, vocab, env.engine));
  }
  if (!run.reference) RETURN_IF_ERROR(make_reference(run, env));
  ASSIGN_OR_RETURN(batches::Loader loader,
                   train::make_loader(config, run.data.stores, config.trainer.num_train_steps));
  run.loader = std::move(loader);
  for (const batches::ComponentUse& use : run.loader->use(config.trainer.num_train_steps))
    if (!use.name.empty()) {
      log_info(fmt::format("component {}: {} examples of {} sequences, {:.2f} epochs", use.name, use.examples,
                           use.sequences, use.epochs()));
      ASSIGN_OR_RETURN(const batches::PackCounts packing, run.loader->reader(use.component).packing());
      if (const std::string text = batches::left_out_text(packing); !text.empty())
        log_warning(fmt::format("component {}: {}; a sequence has {} targets (model.seq_len)", use.name, text,
                                config.model_options().seq_len()));
    }
  auto held_out = train::HeldOutText::create(config, *run.data.stores);
  if (held_out.ok())
    run.held_out = std::move(held_out).value();
  else if (held_out.error().code() == ErrorCode::kInvalidArgument)  // there is no held-out text
    log_warning(fmt::format("no evaluation: {}", held_out.error().message()));
  else
    return held_out.error();
  return Status();
}

}  // namespace ostro::run
