#include "ostro/run/loop/run.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "ostro/audit/witness.h"
#include "ostro/base/log.h"
#include "ostro/base/profile.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/base/watch/time_use.h"
#include "ostro/chain/version.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/run/loop/restore_together.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::run {
namespace {

constexpr std::chrono::milliseconds kWaitForLock{100};
constexpr int kMostWaitsForLock = 3000;  // five minutes

}  // namespace

Run::Run(const train::TrainConfig& config, const Environment& environment)
    : config_(config), env_(environment), directory_(train::run_directory(config)) {}

Run::~Run() = default;

Result<std::unique_ptr<Run>> Run::open(const train::TrainConfig& given, const Environment& environment,
                                       bool amend) {
  if (environment.profile)
    RETURN_IF_ERROR(train::check_profile(*environment.profile, given.trainer.num_train_steps));
  std::unique_ptr<Run> run(new Run(given, environment));
  io::FileSystem& fs = environment.fs;
  RETURN_IF_ERROR(fs.make_dirs(run->directory_));
  auto record = chain::read_record(fs, run->file(chain::kRecordFile));
  if (record.ok())
    run->record_ = std::move(record).value();
  else if (record.error().code() != ErrorCode::kNotFound)
    log_warning(fmt::format("the record of earlier sessions is lost: {}", record.error().message()));
  const auto lock = [&] {
    return chain::lock_run(fs, run->directory_, static_cast<int64_t>(run->record_.sessions.size()) + 1);
  };
  auto locked = lock();
  // A leader before this one may be on its way out, or stopped.
  const fleet::Crew* crew = environment.crew;
  for (int i = 0; crew != nullptr && !locked.ok() && locked.error().code() == ErrorCode::kBusy; ++i) {
    if (i == 0) log_warning(locked.error().message() + "; waiting for it");
    if ((environment.stop && environment.stop()) || i >= kMostWaitsForLock) break;
    std::this_thread::sleep_for(kWaitForLock);
    locked = lock();
  }
  ASSIGN_OR_RETURN(run->lock_, std::move(locked));
  ASSIGN_OR_RETURN(const bool exists, fs.exists(run->file(chain::kChainFile)));
  if (!exists && amend)
    return not_found(
        fmt::format("{} holds no run to amend; leave out --amend to begin one", run->directory_));
  const auto ever =
      exists ? chain::read_chain(fs, run->file(chain::kChainFile)) : Result<chain::Chain>(chain::Chain());
  run->goodput_ = std::make_unique<Goodput>(fs, run->directory_, ever.ok() ? &*ever : nullptr,
                                            given.trainer.worker_price_per_hour);
  run->goodput_->set_workers(environment.crew == nullptr ? 1 : environment.crew->epoch().size);
  std::optional<chain::GenesisEntry> genesis;
  if (exists) {
    ASSIGN_OR_RETURN(const chain::Chain beginning, chain::read_chain_to(fs, run->file(chain::kChainFile), 0));
    genesis = beginning.genesis();
  }
  if (genesis && genesis->initial.has_value() != given.trainer.initialize_from.has_value())
    return invalid_argument(fmt::format(
        "{} holds a run that began with {}; trainer.initialize_from is {}: {}, or give this run another "
        "trainer.id",
        run->directory_, genesis->initial ? "the parameters of a checkpoint" : "parameters that were drawn",
        given.trainer.initialize_from.value_or("null"),
        genesis->initial ? "set it as it was (the checkpoint itself is not needed any more)"
                         : "leave it out"));
  // Before data are made for a config that this run cannot have.
  RETURN_IF_ERROR(genesis ? check_fixed_options(run->directory_, *genesis, given)
                          : given.check_leaf_examples(0));
  ASSIGN_OR_RETURN(run->data_, train::open_data(fs, given, environment.build));
  const int64_t vocab = run->data_.tokenizer->vocab_size();
  run->model_ = train::run_model(given, vocab);
  RETURN_IF_ERROR(train::check_vocabulary(run->model_, vocab));
  const auto plan_from = [&](std::optional<int64_t> before) {
    return plan_resume(fs, run->directory_, *genesis, given, run->data_, run->model_,
                       {amend, /*arrays=*/environment.crew == nullptr, before});
  };
  std::optional<Resumption> resumption;
  if (genesis) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> live, run->live_step());
    if (live) {
      ASSIGN_OR_RETURN(resumption, plan_takeover(fs, run->directory_, *genesis, given, run->data_, *live));
    } else {
      ASSIGN_OR_RETURN(resumption, plan_from({}));
    }
    run->takes_over_ = live.has_value();
    run->config_ = resumption->config;
  }
  RETURN_IF_ERROR(run->make_reference(genesis));
  RETURN_IF_ERROR(run->prepare(vocab));
  if (train::SpreadState* spread = run->runner_->spread();
      spread != nullptr && resumption && !run->takes_over_) {
    ASSIGN_OR_RETURN(resumption, restore_together(*spread, fs, std::move(*resumption), plan_from));
  }
  if (resumption)
    RETURN_IF_ERROR(run->resume(std::move(*resumption), amend));
  else
    RETURN_IF_ERROR(run->begin());
  RETURN_IF_ERROR(run->write_session());
  run->saver_ = std::make_unique<checkpoint::AsyncSaver>(fs, run->file(checkpoint::kCheckpointsFolder));
  return run;
}

// The step after which this run goes on with the state that the workers have: they are after it, or after the
// next, whose entry the chain lacks. Nothing: there are no such workers, or the chain does not reach so far,
// or it lacks a checkpoint that they cannot save any more.
Result<std::optional<int64_t>> Run::live_step() {
  fleet::Crew* crew = env_.crew;
  if (crew == nullptr || !crew->formed() || !crew->settled().has_state) return std::optional<int64_t>();
  const int64_t live = crew->worker().step_number();
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain_until(env_.fs, file(chain::kChainFile), live));
  const int64_t last = chain.last_step();
  const bool knows_last = crew->worker().last_result().ok();
  const bool saved = !audit::is_due(config_, last) || chain.find_checkpoint(last) != nullptr || last == 0;
  if ((last == live && (saved || knows_last)) || (last == live - 1 && saved && knows_last)) return {last};
  log_warning(
      fmt::format("the workers have the state after step {}, but {} ends at step {}: going on from a "
                  "checkpoint",
                  live, file(chain::kChainFile), last));
  crew->forget();
  return std::optional<int64_t>();
}
Status Run::write_session() {
  const chain::GenesisEntry& g = chain_->chain().genesis();
  record_.numerics_version = g.numerics_version;
  record_.program_hash = g.program_hash;
  record_.data_hash = g.data_hash;
  record_.tokenizer_hash = g.tokenizer_hash;
  record_.sessions.push_back(chain::begin_session(env_.argv, state_.step));
  return chain::write_record(env_.fs, file(chain::kRecordFile), record_);
}

Result<RunPlan> Run::plan() const {
  RunPlan plan;
  for (const ir::Shape& s : model_.shapes) plan.parameters += s.count();
  plan.active_parameters = models::active_parameters(model_, config_.model_options().experts_used());
  plan.leaf = runner_->leaf_info();
  plan.update = runner_->update_info();
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo model,
                   env_.engine.estimate(programs_.leaf, train::leaf_options("keep")));
  plan.flops_per_token =
      model.flops / static_cast<double>(train::leaf_rows(programs_) * config_.example_positions());
  return plan;
}

double Run::seconds_since(std::chrono::nanoseconds start) const {
  return std::chrono::duration<double>(env_.clock() - start).count();
}

Status Run::finish_save() {
  const TimeScope saving(TimeUse::kCheckpoint);
  phase("checkpoint finish");
  auto waited = saver_->wait();
  while (!waited.ok() && env_.crew != nullptr && env_.crew->ended(saving_epoch_) && saving_step_ >= 0) {
    ASSIGN_OR_RETURN(const bool again,
                     runner_->spread()->save_again(env_.fs, file(checkpoint::kCheckpointsFolder), *saver_));
    if (!again) break;
    log_info(
        fmt::format("the checkpoint of step {} was not complete when a worker was lost; the others write "
                    "it again",
                    saving_step_));
    saving_epoch_ = env_.crew->epoch().number;
    waited = saver_->wait();
  }
  if (!waited.ok() && env_.crew != nullptr && env_.crew->ended(saving_epoch_)) {
    log_warning(fmt::format("a checkpoint is lost with a worker: {}", waited.error().message()));
    // The chain cannot go on without the name of one that is due.
    if (saving_step_ >= 0) {
      env_.crew->restart();
      return waited.error();
    }
    return Status();
  }
  ASSIGN_OR_RETURN(const auto saved, waited);
  if (saving_step_ >= 0 && saved) {
    RETURN_IF_ERROR(chain_->append(chain::CheckpointEntry{saving_step_, saved->name}));
  }
  saving_step_ = -1;
  return Status();
}

// The manifest holds the chain's head at its step: the chain is made durable first, so that it always reaches
// as far as the checkpoints.
Status Run::save(bool in_chain) {
  const TimeScope saving(TimeUse::kCheckpoint);
  RETURN_IF_ERROR(finish_save());
  phase("checkpoint snapshot");
  fault_point("checkpoint", state_.step, 0);
  RETURN_IF_ERROR(chain_->sync());
  checkpoint::Info info;
  info.step = state_.step;
  info.kind = in_chain ? checkpoint::Kind::kPermanent : checkpoint::Kind::kTemporary;
  info.numerics_version = chain::kNumericsVersion;
  info.config = config::resolved_yaml(config_);
  info.chain_head = chain_->head();
  info.measured = measured_;
  if (train::SpreadState* spread = runner_->spread()) {
    RETURN_IF_ERROR(spread->save(env_.fs, file(checkpoint::kCheckpointsFolder), info, *saver_));
    saving_epoch_ = env_.crew->epoch().number;
  } else {
    RETURN_IF_ERROR(runner_->collect(state_, train::StepRunner::Collect::kAll));
    ASSIGN_OR_RETURN(const auto tensors,
                     snapshot(state_, train::state_arrays(programs_), train::cell_boxes(config_)));
    RETURN_IF_ERROR(saver_->start(info, tensors));
  }
  if (in_chain) {
    saving_step_ = state_.step;
    chain_->expect_checkpoint();
  }
  last_saved_ = state_.step;
  return Status();
}

}  // namespace ostro::run
