#include "ostro/run/loop/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "ostro/audit/witness.h"
#include "ostro/base/failpoint.h"
#include "ostro/base/log.h"
#include "ostro/base/watch/pulse.h"
#include "ostro/base/watch/time_use.h"
#include "ostro/data/batch/prefetcher.h"
#include "ostro/train/step/fingerprints.h"

namespace ostro::run {
namespace {

// The loss weight of a step. Of pairs, whose loss weights are by pair, the tokens of answers.
double tokens_of(const data::Batch& batch, const train::StepResult& result) {
  if (!batch.pairs) return result.weight;
  return std::accumulate(batch.loss_mask.begin(), batch.loss_mask.end(), 0.0);
}

}  // namespace

Status Run::after_step(const Watcher& watcher, StepReport& report, bool save_now) {
  const auto start = env_.clock();
  if (audit::is_due(config_, state_.step))
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
  train::HeldOutLoss held_out;
  if (train::SpreadState* spread = runner_->spread()) {
    ASSIGN_OR_RETURN(const auto losses,
                     spread->evaluate(*held_out_, train::held_out_program(config_, vocab_)));
    held_out = held_out_->loss(losses);
  } else {
    const train::StateArrays arrays = train::state_arrays(programs_);
    const std::vector<size_t> used = train::evaluated_arrays(arrays);
    const bool means = std::any_of(used.begin(), used.end(), [&](size_t k) { return k >= arrays.n; });
    RETURN_IF_ERROR(runner_->collect(
        state_, means ? train::StepRunner::Collect::kAll : train::StepRunner::Collect::kParameters));
    std::vector<runtime::Buffer> weights;
    for (const size_t k : used) weights.push_back(train::array_of(state_, k));
    ASSIGN_OR_RETURN(held_out, evaluator_->evaluate(weights));
  }
  if (!told_uncounted_ && !held_out.uncounted.empty())
    log_warning(fmt::format("{}: {}", held_out.tokens == 0 ? "no evaluation" : "left out of evaluations",
                            train::uncounted_text(held_out)));
  told_uncounted_ = true;
  if (held_out.tokens > 0 && watcher.on_eval)
    watcher.on_eval({state_.step, held_out.loss, held_out.bits_per_byte, held_out.parts, held_out.pairs});
  return Status();
}

Result<RunOutcome> Run::steps(const Watcher& watcher) {
  const int64_t total = config_.trainer.num_train_steps;
  const auto interval = config_.trainer.checkpointer.save_interval;
  auto last_timed_save = env_.clock();
  RunOutcome outcome;
  const std::vector<std::string> measured_names = train::measure_names(programs_.leaf);
  if (watcher.on_start) watcher.on_start(state_.step, total);
  name_thread("training");
  train::StepProfile profile(env_.fs, directory_, env_.profile);
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
    const std::vector<float> scalars = optim::step_scalars(
        config_.optimizer, state_.step, total,
        train::losses_before(chain_->chain(), state_.step, optim::common(config_.optimizer)));
    ASSIGN_OR_RETURN(const train::StepResult result, runner_->run(state_, train::to_arrays(batch), scalars));
    if (!result.ok()) {
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
                               state_.step + 1, result.loss(), result.gradient_norm(), state_.step,
                               scalars[0], state_.step));
    }
    if (optim::common(config_.optimizer).skip_bad_steps && result.loss() > scalars.back())
      log_warning(
          fmt::format("step {}: loss {} is above {}, so weights stay as they are (optimizer.skip_bad_steps)",
                      state_.step, result.loss(), scalars.back()));
    failpoint("step");
    phase("fingerprint");
    measured_ = train::measured_text(result);
    const chain::StepEntry entry =
        train::step_entry(state_.step, result, data::batch_fingerprint(batch), model_.paths, model_.shapes);
    phase("chain append");
    RETURN_IF_ERROR(chain_->append(entry));
    report.step = state_.step;
    report.total = total;
    report.loss = result.measured.loss;
    report.gradient_norm = result.gradient_norm();
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

Status Run::close(const std::string& outcome) {
  closed_ = true;
  chain::end_session(record_, outcome, state_.step);
  const TimesUsed times = goodput_->session();
  for (size_t i = 0; i < kTimeUses; ++i) record_.sessions.back().seconds[kTimeUseNames[i]] = times[i];
  goodput_->write(true);
  return chain::write_record(env_.fs, file(chain::kRecordFile), record_);
}

Result<RunOutcome> Run::train(const Watcher& watcher) {
  auto outcome = steps(watcher);
  // Where several processes share the run, another may go on with it.
  if (outcome.ok() || closed_ || env_.crew != nullptr) return outcome;
  // The first error is the one that matters.
  const Status ended = begun_ && state_.step == 0 && last_saved_ < 0
                           ? forget_run()
                           : close(fmt::format("failed: {}", outcome.error().message()));
  if (!ended.ok()) log_warning(fmt::format("{}: {}", directory_, ended.error().message()));
  return outcome;
}

// Without a chain the directory holds no run, and the same trainer.id may begin one with other data.
Status Run::forget_run() {
  chain_.reset();
  RETURN_IF_ERROR(env_.fs.remove(file(chain::kChainFile)));
  RETURN_IF_ERROR(env_.fs.remove(file(chain::kRecordFile)));
  return env_.fs.sync_dir(directory_);
}

}  // namespace ostro::run
