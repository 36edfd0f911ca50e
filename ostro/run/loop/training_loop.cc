#include "ostro/run/loop/training_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "ostro/audit/record/witness.h"
#include "ostro/base/failpoint.h"
#include "ostro/base/log.h"
#include "ostro/base/profile.h"
#include "ostro/base/watch/pulse.h"
#include "ostro/base/watch/time_use.h"
#include "ostro/run/notice/stop_notice.h"
#include "ostro/run/report/progress.h"
#include "ostro/train/step/fingerprints.h"
#include "ostro/train/step/step_profile.h"

namespace ostro::run {
namespace {

// The loss weight of a step. Of pairs, whose loss weights are by pair, the tokens of answers.
double tokens_of(const batches::Batch& batch, const train::StepResult& result) {
  if (!batch.pairs) return result.weight;
  return std::accumulate(batch.loss_mask.begin(), batch.loss_mask.end(), 0.0);
}

// While it exists, a signal that stops this process says how far the run is (stop_notice.h).
class SignalsSayProgress {
 public:
  ~SignalsSayProgress() { forget_progress(); }
};

}  // namespace

double TrainingLoop::seconds_since(std::chrono::nanoseconds start) const {
  return std::chrono::duration<double>(env_.clock() - start).count();
}

void TrainingLoop::tell_of_save() {
  const auto written = keeper_.take_written();
  if (!written || !watcher_.on_save) return;
  int64_t bytes = 0;
  for (const ir::Shape& shape : train::state_arrays(run_.programs).shapes) bytes += shape.bytes();
  watcher_.on_save({written->first, written->second, bytes});
}

Status TrainingLoop::after_step(StepReport& report, bool timed) {
  const auto start = env_.clock();
  const int64_t step = state_.step();
  const bool named = audit::is_due(run_.config, step);
  if (named || timed)
    RETURN_IF_ERROR(keeper_.save(state_, run_.config, named ? Saving::kNamed : Saving::kTemporary));
  else if (keeper_.name_is_ready())
    RETURN_IF_ERROR(keeper_.finish_save(state_, /*waits=*/false));
  report.save_seconds = seconds_since(start);
  phase("report");
  tell_of_save();
  if (watcher_.on_step) watcher_.on_step(report);
  const int64_t every = run_.config.trainer.steps_per_eval;
  const bool evaluates =
      run_.held_out && (step == run_.config.trainer.num_train_steps || (every > 0 && step % every == 0));
  if (evaluates) {
    phase("evaluate");
    RETURN_IF_ERROR(evaluate());
  }
  if ((named || timed || evaluates) && watcher_.on_milestone) watcher_.on_milestone(step);
  return Status();
}

// A run does not end because there is nothing to measure.
Status TrainingLoop::evaluate() {
  const TimeScope evaluating(TimeUse::kEvaluation);
  pulse_phase("evaluate", state_.step());
  ASSIGN_OR_RETURN(const train::HeldOutLoss held_out, state_.evaluate());
  if (evaluations_++ == 0 && !held_out.uncounted.empty())
    log_warning(fmt::format("{}: {}", held_out.tokens == 0 ? "no evaluation" : "left out of evaluations",
                            train::uncounted_text(held_out)));
  if (held_out.tokens > 0 && watcher_.on_eval)
    watcher_.on_eval({state_.step(), held_out.loss, held_out.bits_per_byte, held_out.parts, held_out.pairs});
  return Status();
}

Result<batches::Batch> TrainingLoop::next_batch(batches::Prefetcher& batches, batches::Batch memory,
                                                StepReport& report) {
  phase("data wait");
  pulse_phase("data", state_.step() + 1);
  const auto start = env_.clock();
  const TimeScope waiting(TimeUse::kData);
  // The first may have to wait for much to be read.
  const auto watch = memory.tokens.empty() ? nullptr : std::make_unique<PulseWatch>();
  ASSIGN_OR_RETURN(batches::Batch batch, batches.next(std::move(memory)));
  report.data_seconds = seconds_since(start);
  return batch;
}

// What a step without a finite result comes to: the state before it is saved, and the session ends.
Error TrainingLoop::not_finite(const train::StepResult& result, const std::vector<float>& scalars) {
  const int64_t step = state_.step();
  const auto end = [&]() -> Status {
    if (keeper_.last_saved() != step) RETURN_IF_ERROR(keeper_.save(state_, run_.config, Saving::kTemporary));
    RETURN_IF_ERROR(keeper_.finish_save(state_));
    return end_session(run_, env_.fs, result.weight == 0 ? "failed: no token counts" : "failed: not finite",
                       step);
  };
  if (const Status ended = end(); !ended.ok()) return ended.error();
  if (result.weight == 0)
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("step {}: no token of the batch counts, all its loss weights are 0; nothing of "
                             "this step was kept, the state after step {} is saved. Raise model.seq_len, "
                             "at which rows are cut, or trainer.train_batch_size, or look at the batch: "
                             "ostro data batch --explain --step {}",
                             step + 1, step, step));
  std::string first;
  for (const auto& [name, norm] : train::watched_norms(run_.programs, result))
    if (first.empty() && !std::isfinite(norm)) first = fmt::format(" (the first of those watched: {})", name);
  return Error(ErrorCode::kInternal,
               fmt::format("step {}: loss {} and gradient norm {} are not both finite{}; nothing of this "
                           "step was kept, the state after step {} is saved. Lower "
                           "optimizer.learning_rate, which was {} here, raise optimizer.warmup, or look "
                           "at the batch: ostro data batch --step {}",
                           step + 1, without_nan_sign(result.loss()),
                           without_nan_sign(result.gradient_norm()), first, step, scalars[0], step));
}

// The record of the run tells what the chain does not have.
Status TrainingLoop::write_findings() {
  bool any = false;
  for (const train::Finding& found : state_.take_findings())
    any = chain::add_finding(run_.record, found.step, found.text) || any;
  return any ? chain::write_record(env_.fs, run_.file(chain::kRecordFile), run_.record) : Status();
}

Status TrainingLoop::step(const batches::Batch& batch, StepReport& report) {
  const auto start = env_.clock();
  const train::TrainConfig& config = run_.config;
  const optim::CommonOptions& optimizer = optim::common(config.optimizer);
  const std::vector<float> scalars =
      optim::step_scalars(config.optimizer, state_.step(), config.trainer.num_train_steps,
                          train::losses_before(keeper_.chain(), state_.step(), optimizer));
  auto advanced = state_.advance(train::leaf_arrays(config, batch, state_.step()), scalars);
  const Status told = write_findings();  // also of a step that ended the run because of them
  ASSIGN_OR_RETURN(const train::StepResult result, std::move(advanced));
  RETURN_IF_ERROR(told);
  if (!result.ok()) return not_finite(result, scalars);
  if (optimizer.skip_bad_steps && result.loss() > scalars.back())
    log_warning(
        fmt::format("step {}: loss {} is above {}, so weights stay as they are (optimizer.skip_bad_steps)",
                    state_.step(), result.loss(), scalars.back()));
  failpoint("step");
  phase("fingerprint");
  const chain::StepEntry entry = train::step_entry(state_.step(), result, batches::batch_fingerprint(batch),
                                                   run_.model.paths, run_.model.shapes);
  phase("chain append");
  if (keeper_.keeps_leaves())
    RETURN_IF_ERROR(keeper_.append_leaves(state_.step(), train::leaf_records(result, run_.model.paths)));
  RETURN_IF_ERROR(keeper_.append(entry, train::measured_text(result)));
  report.step = state_.step();
  report.total = config.trainer.num_train_steps;
  report.loss = result.measured.loss;
  report.gradient_norm = result.gradient_norm();
  report.learning_rate = static_cast<double>(scalars[0]);
  report.tokens = tokens_of(batch, result);
  const std::vector<std::string> names = train::measure_names(run_.programs.leaf);
  for (size_t k = 0; k < result.measures.size(); ++k)
    report.measures.emplace_back(names[k], result.measures[k] / result.weight);
  if (report.step % config.trainer.watch_interval == 0)
    report.watched = train::watched_norms(run_.programs, result);
  report.expert_loads = result.expert_loads;
  report.checked_leaves = result.checked_leaves, report.check_seconds = result.check_seconds;
  report.step_seconds = seconds_since(start);
  return Status();
}

Result<RunOutcome> TrainingLoop::steps() {
  const int64_t total = run_.config.trainer.num_train_steps, first = state_.step();
  const int64_t last = std::min(total, env_.until.value_or(total));
  const auto interval = run_.config.trainer.checkpointer.save_interval;
  auto last_timed_save = env_.clock();
  RunOutcome outcome;
  if (watcher_.on_start) watcher_.on_start(first, total);
  name_thread("training");
  train::StepProfile profile(env_.fs, run_.directory, env_.profile);
  // Nothing is computed beside the first batch, so that it may have all threads.
  batches::Prefetcher batches(
      [this, first](int64_t step, batches::Batch memory) {
        return run_.loader->batch(step, step == first ? env_.build.threads_or_all() : 1, std::move(memory));
      },
      first);
  batches::Batch batch;
  RETURN_IF_ERROR(keeper_.save_owed(state_, run_.config));
  const SignalsSayProgress until_the_end;
  while (state_.step() < last) {
    if (state_.goes_elsewhere(keeper_.saver())) {
      outcome.handed_over = true;
      break;
    }
    if (env_.crew == nullptr) note_progress(state_.step(), keeper_.last_whole());
    profile.reach(state_.step());
    const PhasedSpan span(profile.span_name(state_.step()));
    StepReport report;
    run_.goodput->begin_step(state_.step() + 1);
    ASSIGN_OR_RETURN(batch, next_batch(batches, std::move(batch), report));
    const Status done = step(batch, report);
    if (!done.ok() && done.error().code() == ErrorCode::kBusy && env_.stop && env_.stop()) {
      // Workers that share the state could not do this step: what was before it is saved.
      log_warning(done.error().message());
      if (keeper_.last_saved() != state_.step())
        RETURN_IF_ERROR(keeper_.save(state_, run_.config, Saving::kTemporary));
      break;
    }
    RETURN_IF_ERROR(done);
    run_.goodput->set_workers(state_.processes());
    run_.goodput->end_step(state_.step(), report.tokens);
    run_.goodput->write(false);
    report.goodput = run_.goodput->totals();
    report.processes = state_.processes();
    const bool stopping = env_.stop && env_.stop() && state_.step() < last;
    const bool timed = interval && seconds_since(last_timed_save) >= static_cast<double>(interval->seconds);
    RETURN_IF_ERROR(after_step(report, stopping || timed));
    if (stopping) break;
    if (timed) last_timed_save = env_.clock();
  }
  profile.reach(state_.step());
  RETURN_IF_ERROR(keeper_.finish_save(state_));
  tell_of_save();
  RETURN_IF_ERROR(keeper_.writer().sync());
  outcome.finished = state_.step() == total;
  outcome.steps = state_.step();
  outcome.hash = keeper_.chain().head();
  RETURN_IF_ERROR(end_session(run_, env_.fs,
                              outcome.finished        ? "finished"
                              : outcome.handed_over   ? "handed over to another worker"
                              : outcome.steps == last ? chain::kEndedAsAsked
                                                      : "interrupted",
                              state_.step()));
  return outcome;
}

Status end_session(OpenedRun& run, io::FileSystem& fs, const std::string& outcome, int64_t step) {
  if (!run.record.sessions.back().ended.empty()) return Status();
  chain::end_session(run.record, outcome, step);
  const TimesUsed times = run.goodput->session();
  for (size_t i = 0; i < kTimeUses; ++i) run.record.sessions.back().seconds[kTimeUseNames[i]] = times[i];
  run.goodput->write(true);
  return chain::write_record(fs, run.file(chain::kRecordFile), run.record);
}

}  // namespace ostro::run
