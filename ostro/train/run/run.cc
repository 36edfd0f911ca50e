#include "ostro/train/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "ostro/base/failpoint.h"
#include "ostro/base/log.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/base/watch/pulse.h"
#include "ostro/base/watch/time_use.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/data/batch/prefetcher.h"
#include "ostro/data/formats/shared_chat_template.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/train/processes/process_runner.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/record/version.h"
#include "ostro/train/run/initial.h"
#include "ostro/train/run/restore_together.h"
#include "ostro/train/run/witness.h"
#include "ostro/train/step/fingerprints.h"
#include "ostro/train/step/reference.h"
#include "ostro/train/step/snapshot.h"
#include "ostro/train/workers/workers.h"

namespace ostro::train {
namespace {

constexpr std::chrono::milliseconds kWaitForLock{100};
constexpr int kMostWaitsForLock = 3000;  // five minutes

// The loss weight of a step. Of pairs, whose loss weights are by pair, the tokens of answers.
double tokens_of(const data::Batch& batch, const StepResult& result) {
  if (!batch.pairs) return result.weight;
  return std::accumulate(batch.loss_mask.begin(), batch.loss_mask.end(), 0.0);
}

std::string in(const std::string& directory, const char* name) { return directory + "/" + name; }

}  // namespace

Run::Run(const TrainConfig& config, const Environment& environment)
    : config_(config), env_(environment), directory_(run_directory(config)) {}

Run::~Run() = default;

Result<std::unique_ptr<Run>> Run::open(const TrainConfig& given, const Environment& environment, bool amend) {
  if (environment.profile)
    RETURN_IF_ERROR(check_profile(*environment.profile, given.trainer.num_train_steps));
  std::unique_ptr<Run> run(new Run(given, environment));
  io::FileSystem& fs = environment.fs;
  RETURN_IF_ERROR(fs.make_dirs(run->directory_));
  auto record = read_record(fs, in(run->directory_, kRecordFile));
  if (record.ok())
    run->record_ = std::move(record).value();
  else if (record.error().code() != ErrorCode::kNotFound)
    log_warning(fmt::format("the record of earlier sessions is lost: {}", record.error().message()));
  const auto lock = [&] {
    return lock_run(fs, run->directory_, static_cast<int64_t>(run->record_.sessions.size()) + 1);
  };
  auto locked = lock();
  // A leader before this one may be on its way out, or stopped.
  const Crew* crew = environment.crew;
  for (int i = 0; crew != nullptr && !locked.ok() && locked.error().code() == ErrorCode::kBusy; ++i) {
    if (i == 0) log_warning(locked.error().message() + "; waiting for it");
    if ((environment.stop && environment.stop()) || i >= kMostWaitsForLock) break;
    std::this_thread::sleep_for(kWaitForLock);
    locked = lock();
  }
  ASSIGN_OR_RETURN(run->lock_, std::move(locked));
  ASSIGN_OR_RETURN(const bool exists, fs.exists(in(run->directory_, kChainFile)));
  if (!exists && amend)
    return not_found(
        fmt::format("{} holds no run to amend; leave out --amend to begin one", run->directory_));
  const auto ever = exists ? read_chain(fs, in(run->directory_, kChainFile)) : Result<Chain>(Chain());
  run->goodput_ = std::make_unique<Goodput>(fs, run->directory_, ever.ok() ? &*ever : nullptr,
                                            given.trainer.worker_price_per_hour);
  run->goodput_->set_workers(environment.crew == nullptr ? 1 : environment.crew->epoch().size);
  std::optional<GenesisEntry> genesis;
  if (exists) {
    ASSIGN_OR_RETURN(const Chain beginning, read_chain_to(fs, in(run->directory_, kChainFile), 0));
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
  ASSIGN_OR_RETURN(run->data_, open_data(fs, given, environment.build));
  const int64_t vocab = run->data_.tokenizer->vocab_size();
  run->model_ = run_model(given, vocab);
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
  if (SpreadState* spread = run->runner_->spread(); spread != nullptr && resumption && !run->takes_over_) {
    ASSIGN_OR_RETURN(resumption, restore_together(*spread, fs, std::move(*resumption), plan_from));
  }
  if (resumption)
    RETURN_IF_ERROR(run->resume(std::move(*resumption), amend));
  else
    RETURN_IF_ERROR(run->begin());
  RETURN_IF_ERROR(run->write_session());
  run->saver_ =
      std::make_unique<checkpoint::AsyncSaver>(fs, in(run->directory_, checkpoint::kCheckpointsFolder));
  return run;
}

// The step after which this run goes on with the state that the workers have: they are after it, or after the
// next, whose entry the chain lacks. Nothing: there are no such workers, or the chain does not reach so far,
// or it lacks a checkpoint that they cannot save any more.
Result<std::optional<int64_t>> Run::live_step() {
  Crew* crew = env_.crew;
  if (crew == nullptr || !crew->formed() || !crew->settled().has_state) return std::optional<int64_t>();
  const int64_t live = crew->worker().step_number();
  ASSIGN_OR_RETURN(const Chain chain, read_chain_until(env_.fs, in(directory_, kChainFile), live));
  const int64_t last = chain.last_step();
  const bool knows_last = crew->worker().last_result().ok;
  const bool saved = !is_due(config_, last) || chain.find_checkpoint(last) != nullptr || last == 0;
  if ((last == live && (saved || knows_last)) || (last == live - 1 && saved && knows_last)) return {last};
  log_warning(
      fmt::format("the workers have the state after step {}, but {} ends at step {}: going on from a "
                  "checkpoint",
                  live, in(directory_, kChainFile), last));
  crew->forget();
  return std::optional<int64_t>();
}

// The state that a new run begins with.
Result<State> Run::first_state(const CanonicalPrograms& programs, const StateArrays& arrays) {
  if (first_state_) return *std::exchange(first_state_, std::nullopt);
  ASSIGN_OR_RETURN(State state, initial_state(programs, env_.engine, config_.trainer.seed));
  if (config_.trainer.initialize_from) RETURN_IF_ERROR(take_parameters(env_.fs, config_, arrays, state));
  return state;
}

// What pairs are compared with. A file that is lost is made again, from the initial state.
Status Run::make_reference(const std::optional<GenesisEntry>& genesis) {
  if (dpo_objective(config_.objective) == nullptr) return Status();
  const auto take = [&](const Reference& made) {
    reference_ = made.hash;
    data_.stores = data_.stores->with_scores(made.scores);
    return Status();
  };
  if (genesis) {
    if (!genesis->reference)
      return corrupt(fmt::format("{}: the genesis has no reference, and objective.type is dpo",
                                 in(directory_, kChainFile)));
    const auto kept = read_reference(env_.fs, directory_, *data_.stores, *genesis->reference);
    if (kept.ok()) return take(*kept);
    log_warning(fmt::format("{}; it is computed again", kept.error().message()));
  }
  ASSIGN_OR_RETURN(const CanonicalPrograms programs, make_programs(config_, model_));
  const StateArrays arrays = state_arrays(programs);
  State state;
  if (genesis && genesis->initial) {
    ASSIGN_OR_RETURN(state, load_initial(env_.fs, directory_, *genesis, arrays));
  } else {
    ASSIGN_OR_RETURN(state, first_state(programs, arrays));
    if (!genesis) first_state_ = state;
  }
  log_info("computing what the initial weights give to the answers of all pairs");
  ASSIGN_OR_RETURN(const Reference made,
                   compute_reference(*programs.reference, env_.engine, state.params, config_, *data_.stores));
  if (genesis && made.hash != *genesis->reference)
    return corrupt(fmt::format(
        "{}: computed again, the reference has the hash {}, but the run began with {}: other code made it",
        directory_, made.hash, *genesis->reference));
  RETURN_IF_ERROR(write_reference(env_.fs, directory_, *data_.stores, made));
  return take(made);
}

// Everything that follows from the config.
Status Run::prepare(int64_t vocab) {
  ASSIGN_OR_RETURN(data::Loader loader, make_loader(config_, data_.stores, config_.trainer.num_train_steps));
  loader_ = std::move(loader);
  for (const data::ComponentUse& use : loader_->use(config_.trainer.num_train_steps))
    if (!use.name.empty()) {
      log_info(fmt::format("component {}: {} examples of {} sequences, {:.2f} epochs", use.name, use.examples,
                           use.sequences, use.epochs()));
      if (const std::string text = data::left_out_text(use.packing); !text.empty())
        log_warning(fmt::format("component {}: {}; a sequence has {} targets (model.seq_len)", use.name, text,
                                config_.model_options().seq_len()));
    }
  ASSIGN_OR_RETURN(programs_, make_programs(config_, model_));
  {
    const TimeScope compiling(TimeUse::kCompile);
    ASSIGN_OR_RETURN(runner_, make_steps());
  }
  vocab_ = vocab;
  auto held_out = HeldOutText::create(config_, *data_.stores);
  if (held_out.ok())
    held_out_ = std::move(held_out).value();
  else if (held_out.error().code() == ErrorCode::kInvalidArgument)  // there is no held-out text
    log_warning(fmt::format("no evaluation: {}", held_out.error().message()));
  else
    return held_out.error();
  if (held_out_ && runner_->spread() == nullptr) {
    ASSIGN_OR_RETURN(evaluator_, HeldOut::create(*held_out_, held_out_program(config_, vocab), env_.engine));
  }
  return Status();
}

Result<std::unique_ptr<StepRunner>> Run::make_steps() {
  ASSIGN_OR_RETURN(const std::string remat, config_.model_options().remat());
  Crew* crew = env_.crew;
  if (crew == nullptr) return make_runner(programs_, env_.engine, remat, config_, env_.workers);
  // The others get ready while this process does.
  dist::KeyValue& job = crew->membership().job();
  RETURN_IF_ERROR(job.set(kReferenceKey, reference_.value_or(kNoReference)));
  RETURN_IF_ERROR(job.set(kDataKey, data_.data_hash));
  RETURN_IF_ERROR(job.set(kProgramKey, programs_hash(programs_)));
  RETURN_IF_ERROR(job.set(kConfigKey, config::resolved_yaml(config_)));
  if (!crew->has_run()) crew->set_run(programs_, remat, config_);
  return make_process_runner(*crew);
}

Status Run::begin() {
  GenesisEntry g;
  g.numerics_version = kNumericsVersion;
  g.program_hash = programs_hash(programs_);
  g.config = canonical_text(config_);
  g.data_hash = data_.data_hash;
  g.tokenizer_hash = data_.tokenizer_hash;
  g.reference = reference_;
  io::FileSystem& fs = env_.fs;
  RETURN_IF_ERROR(
      io::write_file_atomically(fs, in(directory_, "config.yaml"), config::resolved_yaml(config_)));
  RETURN_IF_ERROR(io::write_file_atomically(fs, in(directory_, "program.ir"), print_programs(programs_)));
  RETURN_IF_ERROR(tokenizer::save_tokenizer(fs, *data_.tokenizer, in(directory_, "tokenizer.json")));
  // Names the eos, which tokenizer.json does not.
  RETURN_IF_ERROR(
      io::write_file_atomically(fs, in(directory_, "tokenizer_config.json"),
                                data_.tokenizer->tokenizer_config_json(config_.model_options().seq_len())));
  // Who exports the model wants to talk to it as it was trained.
  ASSIGN_OR_RETURN(const auto chat, data::shared_chat_template(fs, config_.data, *data_.tokenizer));
  if (chat) RETURN_IF_ERROR(chat->save(fs, directory_));
  if (config_.trainer.initialize_from) {
    const StateArrays arrays = state_arrays(programs_);
    ASSIGN_OR_RETURN(const State state, first_state(programs_, arrays));
    ASSIGN_OR_RETURN(g.initial, save_initial(fs, directory_, config_, arrays, state));
  }
  first_state_.reset();
  RETURN_IF_ERROR(begin_state(g));
  // The chain is the commit point: a directory without one is no run.
  ASSIGN_OR_RETURN(ChainWriter chain, ChainWriter::create(fs, in(directory_, kChainFile), g));
  chain_ = std::make_unique<ChainWriter>(std::move(chain));
  return Status();
}

Status Run::begin_state(const GenesisEntry& genesis) {
  SpreadState* spread = runner_->spread();
  if (genesis.initial && spread != nullptr) {
    ASSIGN_OR_RETURN(const std::string path, initial_checkpoint(env_.fs, directory_, genesis));
    ASSIGN_OR_RETURN(const CellsRead read, spread->restore(env_.fs, path, 0, false));
    return read.unfit.empty() ? Status() : corrupt(fmt::format("{}: {}", path, read.unfit));
  }
  if (genesis.initial) {
    ASSIGN_OR_RETURN(state_, load_initial(env_.fs, directory_, genesis, state_arrays(programs_)));
    return Status();
  }
  if (spread != nullptr) return spread->begin(config_.trainer.seed);
  ASSIGN_OR_RETURN(state_, initial_state(programs_, env_.engine, config_.trainer.seed));
  return Status();
}

Status Run::resume(Resumption from, bool amend) {
  io::FileSystem& fs = env_.fs;
  const int64_t step = from.state.step;
  const Period now{step, canonical_text(config_), programs_hash(programs_)};
  const std::string difference = amend_difference(config_, from.period, now);
  const bool amends = difference != "{}";
  if (amends && (!amend || step == 0))
    return invalid_argument(fmt::format(
        "{} holds a run with another program (the model's code changed): hash {} there, {} here; {}give this "
        "run another trainer.id, or go back to the code that began it",
        directory_, from.period.program_hash, now.program_hash,
        step == 0 ? "" : fmt::format("to go on with it after step {}, add --amend; ", step)));
  // Others may still write there what will be of no use.
  if (const Status removed = checkpoint::remove_leftovers(fs, in(directory_, checkpoint::kCheckpointsFolder));
      !removed.ok()) {
    if (env_.crew == nullptr) return removed;
    log_warning(removed.error().message());
  }
  if (takes_over_) {
    state_ = std::move(from.state);
    log_info(fmt::format("going on with {} after step {}, with the state that the workers have", directory_,
                         step));
  } else if (step > 0) {
    state_ = std::move(from.state);
    last_saved_ = step;
    log_info(fmt::format("resuming {} after step {}{}", directory_, step,
                         from.named ? ""
                                    : " (its checkpoint is not in the chain: the parameters' fingerprint was "
                                      "compared, the optimizer's arrays could not be)"));
  } else {
    ASSIGN_OR_RETURN(const Chain beginning, read_chain_to(fs, in(directory_, kChainFile), 0));
    RETURN_IF_ERROR(begin_state(beginning.genesis()));
    log_info(fmt::format("resuming {} from the beginning: it has no checkpoint yet", directory_));
  }
  ASSIGN_OR_RETURN(ChainWriter writer, ChainWriter::resume(fs, in(directory_, kChainFile), step));
  chain_ = std::make_unique<ChainWriter>(std::move(writer));
  // The process may have died between the checkpoint's commit and its entry. What is due at this step is what
  // was due when it was done: an entry of an amend stands behind it.
  const bool lacks_checkpoint =
      step > from.period.first && is_due(from.held, step) && chain_->chain().find_checkpoint(step) == nullptr;
  if (takes_over_ && lacks_checkpoint) {
    save_first_ = true;
    measured_ = measured_text(env_.crew->worker().last_result());
  } else if (lacks_checkpoint)
    RETURN_IF_ERROR(chain_->append(CheckpointEntry{step, from.name}));
  if (amends) {
    log_info(fmt::format("amended after step {}: {}", step, amend_text(difference)));
    // The chain is the commit point here, too: what it names is there before it, and config.yaml, which it
    // can do without, is brought up to it whenever the run goes on.
    if (now.program_hash != from.period.program_hash)
      RETURN_IF_ERROR(io::write_file_atomically(
          fs, in(directory_, program_file(chain_->chain().genesis(), now.program_hash).c_str()),
          print_programs(programs_)));
    failpoint("amend");
    RETURN_IF_ERROR(chain_->append(AmendEntry{step, difference}));
    RETURN_IF_ERROR(chain_->sync());
    failpoint("amend");
  }
  const std::string path = in(directory_, "config.yaml");
  const auto text = fs.read_file(path);
  const auto written = text.ok() ? parse_train_config(*text, path, config_.model.choices()) : text.error();
  if (!written.ok() || canonical_text(*written) != now.config)
    RETURN_IF_ERROR(io::write_file_atomically(fs, path, config::resolved_yaml(config_)));
  return Status();
}

Status Run::write_session() {
  const GenesisEntry& g = chain_->chain().genesis();
  record_.numerics_version = g.numerics_version;
  record_.program_hash = g.program_hash;
  record_.data_hash = g.data_hash;
  record_.tokenizer_hash = g.tokenizer_hash;
  record_.sessions.push_back(begin_session(env_.argv, state_.step));
  return write_record(env_.fs, in(directory_, kRecordFile), record_);
}

Status Run::close(const std::string& outcome) {
  end_session(record_, outcome, state_.step);
  const TimesUsed times = goodput_->session();
  for (size_t i = 0; i < kTimeUses; ++i) record_.sessions.back().seconds[kTimeUseNames[i]] = times[i];
  goodput_->write(true);
  return write_record(env_.fs, in(directory_, kRecordFile), record_);
}

Result<RunPlan> Run::plan() const {
  RunPlan plan;
  for (const ir::Shape& s : model_.shapes) plan.parameters += s.count();
  plan.active_parameters = models::active_parameters(model_, config_.model_options().experts_used());
  plan.leaf = runner_->leaf_info();
  plan.update = runner_->update_info();
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo model,
                   env_.engine.estimate(programs_.leaf, leaf_options("keep")));
  plan.flops_per_token =
      model.flops / static_cast<double>(leaf_rows(programs_) * config_.example_positions());
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
    ASSIGN_OR_RETURN(const bool again, runner_->spread()->save_again(
                                           env_.fs, in(directory_, checkpoint::kCheckpointsFolder), *saver_));
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
    RETURN_IF_ERROR(chain_->append(CheckpointEntry{saving_step_, saved->name}));
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
  info.numerics_version = kNumericsVersion;
  info.config = config::resolved_yaml(config_);
  info.chain_head = chain_->head();
  info.measured = measured_;
  if (SpreadState* spread = runner_->spread()) {
    RETURN_IF_ERROR(spread->save(env_.fs, in(directory_, checkpoint::kCheckpointsFolder), info, *saver_));
    saving_epoch_ = env_.crew->epoch().number;
  } else {
    RETURN_IF_ERROR(runner_->collect(state_, StepRunner::Collect::kAll));
    RETURN_IF_ERROR(saver_->start(info, snapshot(state_, state_arrays(programs_), cell_boxes(config_))));
  }
  if (in_chain) {
    saving_step_ = state_.step;
    chain_->expect_checkpoint();
  }
  last_saved_ = state_.step;
  return Status();
}

Status Run::after_step(const Watcher& watcher, StepReport& report, bool save_now) {
  const auto start = env_.clock();
  if (is_due(config_, state_.step))
    RETURN_IF_ERROR(save(true));
  else if (save_now)
    RETURN_IF_ERROR(save(false));
  else if (saving_step_ >= 0 && !saver_->running())
    RETURN_IF_ERROR(finish_save());
  report.save_seconds = seconds_since(start);
  phase("report");
  if (watcher.on_step) watcher.on_step(report);
  const bool last = state_.step == config_.trainer.num_train_steps;
  if (held_out_ &&
      (last || (config_.trainer.steps_per_eval > 0 && state_.step % config_.trainer.steps_per_eval == 0))) {
    phase("evaluate");
    RETURN_IF_ERROR(evaluate(watcher));
  }
  return Status();
}

// A run does not end because there is nothing to measure.
Status Run::evaluate(const Watcher& watcher) {
  const TimeScope evaluating(TimeUse::kEvaluation);
  pulse_phase("evaluate", state_.step);
  HeldOutLoss held_out;
  if (SpreadState* spread = runner_->spread()) {
    ASSIGN_OR_RETURN(const auto losses, spread->evaluate(*held_out_, held_out_program(config_, vocab_)));
    held_out = held_out_->loss(losses);
  } else {
    const StateArrays arrays = state_arrays(programs_);
    const std::vector<size_t> used = evaluated_arrays(arrays);
    const bool means = std::any_of(used.begin(), used.end(), [&](size_t k) { return k >= arrays.n; });
    RETURN_IF_ERROR(
        runner_->collect(state_, means ? StepRunner::Collect::kAll : StepRunner::Collect::kParameters));
    std::vector<runtime::Buffer> weights;
    for (const size_t k : used)
      weights.push_back(k < arrays.n ? state_.params[k] : state_.kept[k - arrays.n]);
    ASSIGN_OR_RETURN(held_out, evaluator_->evaluate(weights));
  }
  if (!told_uncounted_ && !held_out.uncounted.empty())
    log_warning(fmt::format("{}: {}", held_out.tokens == 0 ? "no evaluation" : "left out of evaluations",
                            uncounted_text(held_out)));
  told_uncounted_ = true;
  if (held_out.tokens > 0 && watcher.on_eval)
    watcher.on_eval({state_.step, held_out.loss, held_out.bits_per_byte, held_out.parts, held_out.pairs});
  return Status();
}

Result<RunOutcome> Run::train(const Watcher& watcher) {
  const int64_t total = config_.trainer.num_train_steps;
  const auto interval = config_.trainer.checkpointer.save_interval;
  auto last_timed_save = env_.clock();
  RunOutcome outcome;
  const std::vector<std::string> measured_names = measure_names(programs_.leaf);
  if (watcher.on_start) watcher.on_start(state_.step, total);
  name_thread("training");
  StepProfile profile(env_.fs, directory_, env_.profile);
  // Nothing is computed beside the first batch, so that it may have all threads.
  data::Prefetcher batches(
      [this, first = state_.step](int64_t step, data::Batch memory) {
        return loader_->batch(step, step == first ? env_.build.threads_or_all() : 1, std::move(memory));
      },
      state_.step);
  data::Batch batch;
  if (save_first_) RETURN_IF_ERROR(save(true));
  while (state_.step < total) {
    // Workers write a checkpoint in the background; those who do are to be there until it is done.
    if (env_.crew != nullptr) env_.crew->hold(saver_->running());
    if (env_.crew != nullptr && env_.crew->leaves_next()) {
      outcome.handed_over = true;
      break;
    }
    profile.reach(state_.step);
    const PhasedSpan span(profile.span_name(state_.step));
    StepReport report;
    goodput_->begin_step(state_.step + 1);
    phase("data wait");
    pulse_phase("data", state_.step + 1);
    auto start = env_.clock();
    {
      const TimeScope waiting(TimeUse::kData);
      // The first may have to wait for much to be read.
      const auto watch = batch.tokens.empty() ? nullptr : std::make_unique<PulseWatch>();
      ASSIGN_OR_RETURN(batch, batches.next(std::move(batch)));
    }
    report.data_seconds = seconds_since(start);
    start = env_.clock();
    const std::vector<float> scalars =
        optim::step_scalars(config_.optimizer, state_.step, total,
                            losses_before(chain_->chain(), state_.step, optim::common(config_.optimizer)));
    ASSIGN_OR_RETURN(const StepResult result, runner_->run(state_, to_arrays(batch), scalars));
    if (!result.ok) {
      if (last_saved_ != state_.step) RETURN_IF_ERROR(save(false));
      RETURN_IF_ERROR(finish_save());
      RETURN_IF_ERROR(close(result.weight == 0 ? "failed: no token counts" : "failed: not finite"));
      if (result.weight == 0)
        return Error(
            ErrorCode::kInvalidArgument,
            fmt::format("step {}: no token of the batch counts, all its loss weights are 0; nothing of "
                        "this step was kept, the state after step {} is saved. Raise model.seq_len, "
                        "at which rows are cut, or trainer.train_batch_size, or look at the batch: "
                        "ostro data batch --explain --step {}",
                        state_.step + 1, state_.step, state_.step));
      return Error(ErrorCode::kInternal,
                   fmt::format("step {}: loss {} and gradient norm {} are not both finite; nothing of this "
                               "step was kept, the state after step {} is saved. Lower "
                               "optimizer.learning_rate, which was {} here, raise optimizer.warmup, or look "
                               "at the batch: ostro data batch --step {}",
                               state_.step + 1, result.loss, result.gradient_norm, state_.step, scalars[0],
                               state_.step));
    }
    if (optim::common(config_.optimizer).skip_bad_steps && result.loss > scalars.back())
      log_warning(
          fmt::format("step {}: loss {} is above {}, so weights stay as they are (optimizer.skip_bad_steps)",
                      state_.step, result.loss, scalars.back()));
    failpoint("step");
    phase("fingerprint");
    measured_ = measured_text(result);
    const StepEntry entry =
        step_entry(state_.step, result, data::batch_fingerprint(batch), model_.paths, model_.shapes);
    phase("chain append");
    RETURN_IF_ERROR(chain_->append(entry));
    report.step = state_.step;
    report.total = total;
    report.loss = static_cast<double>(result.loss);
    report.gradient_norm = result.gradient_norm;
    report.learning_rate = static_cast<double>(scalars[0]);
    report.tokens = tokens_of(batch, result);
    for (size_t k = 0; k < result.measures.size(); ++k)
      report.measures.emplace_back(measured_names[k], result.measures[k] / result.weight);
    report.expert_loads = result.expert_loads;
    report.step_seconds = seconds_since(start);
    if (env_.crew != nullptr) goodput_->set_workers(env_.crew->epoch().size);
    goodput_->end_step(state_.step, report.tokens);
    goodput_->write(false);
    report.goodput = goodput_->totals();
    const bool stopping = env_.stop && env_.stop() && state_.step < total;
    const bool timed = interval && seconds_since(last_timed_save) >= static_cast<double>(interval->seconds);
    RETURN_IF_ERROR(after_step(watcher, report, stopping || timed));
    if (stopping) break;
    if (timed) last_timed_save = env_.clock();
  }
  profile.reach(state_.step);
  RETURN_IF_ERROR(finish_save());
  RETURN_IF_ERROR(chain_->sync());
  outcome.finished = state_.step == total;
  outcome.steps = state_.step;
  outcome.hash = chain_->head();
  RETURN_IF_ERROR(close(outcome.finished      ? "finished"
                        : outcome.handed_over ? "handed over to another worker"
                                              : "interrupted"));
  return outcome;
}

}  // namespace ostro::train
