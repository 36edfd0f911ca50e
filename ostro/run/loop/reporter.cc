#include "ostro/run/loop/reporter.h"

#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/base/machine.h"
#include "ostro/base/units.h"
#include "ostro/run/report/expert_load.h"
#include "ostro/train/programs/mfu.h"

namespace ostro::run {

namespace {
// Below it a layer's experts are said to have collapsed.
constexpr double kLeastEntropy = 0.5;
constexpr auto kPeakInterval = std::chrono::minutes(1);
// The page of a run that goes on takes no more than this share of its time.
constexpr int64_t kPageShare = 100;

// "1 leaf", "3 leaves".
std::string counted(int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// What was in use of the memory of a device, at most; nothing where the engine's memory does not count.
void add_device_memory(runtime::Engine& engine, Metrics& metrics) {
  if (const int64_t peak = engine.memory().use().peak; peak > 0)
    metrics["memory/device_peak_bytes"] = static_cast<double>(peak);
}
}  // namespace

Reporter::Reporter(const train::TrainConfig& config, const Environment& env, const Run& run, Console& console)
    : config_(config),
      env_(env),
      directory_(run.directory()),
      console_(console),
      meters_(env.fs, run.directory()),
      peak_(env.engine, train::precision(config)),
      peak_measured_(env.clock()) {}

Result<std::unique_ptr<Reporter>> Reporter::create(const train::TrainConfig& config, const Environment& env,
                                                   const Run& run, Console& console) {
  std::unique_ptr<Reporter> r(new Reporter(config, env, run, console));
  const std::string& directory = run.directory();
  r->says_goodput_ = env.crew != nullptr || config.trainer.worker_price_per_hour;
  ASSIGN_OR_RETURN(const RunPlan plan, run.plan());
  ASSIGN_OR_RETURN(r->tracker_, make_trackers(env.fs, directory, config.trainer.tracker, run.step()));
  r->flops_per_token_ = plan.flops_per_token;
  const std::string active =
      plan.active_parameters == plan.parameters
          ? ""
          : fmt::format(" ({:.2f} M for a token)", static_cast<double>(plan.active_parameters) * 1e-6);
  const int64_t examples = *config.numerics.leaf_examples,
                leaves = config.trainer.train_batch_size.at(run.step()) / examples;
  log_info(fmt::format("{}: {:.2f} M parameters{}, {} of {} a step, {:.1f} MFLOP a token", directory,
                       static_cast<double>(plan.parameters) * 1e-6, active,
                       counted(leaves, "leaf (microbatch)", "leaves (microbatches)"),
                       counted(examples, "sequence", "sequences"), r->flops_per_token_ * 1e-6));
  // Of a device's memory the process shows nothing.
  if (env.crew == nullptr && &env.engine.memory() == &runtime::host_memory()) r->memory_ = plan.memory;
  env.engine.memory().forget_peak();  // what was measured is no part of training
  // This process has taken some of it already.
  if (const int64_t left = available_memory().bytes; left > 0) r->room_ = left + train::resident_memory().now;
  return r;
}

Watcher Reporter::watcher() {
  Watcher w;
  w.on_start = [this](int64_t first, int64_t total) {
    progress_ = std::make_unique<Progress>(console_, first, total);
    if (memory_ > 0 && first < total)
      forecast_ = std::make_unique<Forecast>(first + 1, total - first, memory_, room_);
    meters_.now().step = first, meters_.now().total = total;
    meters_.write();
  };
  w.on_step = [this](const StepReport& r) { step(r); };
  w.on_eval = [this](const EvalReport& r) { eval(r); };
  w.on_save = [this](const SaveReport& r) { meters_.saved(r.step, static_cast<double>(r.bytes), r.seconds); };
  if (env_.refresh_page) w.on_milestone = [this](int64_t) { refresh_page(); };
  return w;
}

double Reporter::mfu(const StepReport& r) {
  if (const auto now = env_.clock(); now - peak_measured_ >= kPeakInterval) {
    peak_.measure_again();
    peak_measured_ = env_.clock();
  }
  // The peak is that of one process.
  const double tokens_per_second = progress_->tokens_per_second() / static_cast<double>(r.processes);
  peak_.reached(flops_per_token_ * tokens_per_second);
  return train::model_flops_utilization(flops_per_token_, tokens_per_second, peak_.value());
}

void Reporter::refresh_page() {
  const auto now = env_.clock();
  if (page_failed_ ||
      (page_ended_.count() > 0 && now - page_ended_ < kPageShare * (page_ended_ - page_begun_)))
    return;
  const Status written = env_.refresh_page(directory_);
  page_begun_ = now;
  page_ended_ = env_.clock();
  if (written.ok()) return;
  page_failed_ = true;
  log_warning(fmt::format("the run's page is not kept up to date: {}", written.error().message()));
}

void Reporter::meter(const StepReport& r) {
  Meters& m = meters_.now();
  m.step = r.step, m.total = r.total;
  m.loss = r.loss, m.gradient_norm = r.gradient_norm, m.learning_rate = r.learning_rate;
  m.tokens_per_second = progress_->tokens_per_second();
  m.data_seconds = r.data_seconds, m.save_seconds = r.save_seconds;
  m.processes = r.processes;
  m.checked_leaves += r.checked_leaves, m.check_seconds += r.check_seconds;
  meters_.step_ended(r.step_seconds);
}

void Reporter::step(const StepReport& r) {
  forecast_.reset();
  progress_->update(r.step, static_cast<int64_t>(r.tokens), [&] {
    return ProgressNumbers{r.loss, mfu(r), train::resident_memory().now,
                           says_goodput_ ? r.goodput.share() : 0};
  });
  meter(r);
  Metrics metrics = {{"train/loss", r.loss},
                     {"train/grad_norm", r.gradient_norm},
                     {"train/learning_rate", r.learning_rate},
                     {"throughput/tokens_per_second", progress_->tokens_per_second()},
                     {"throughput/step_seconds", r.step_seconds},
                     {"throughput/data_stall_seconds", r.data_seconds},
                     {"throughput/checkpoint_stall_seconds", r.save_seconds},
                     {"throughput/mfu", mfu(r)},
                     {"throughput/goodput", r.goodput.share()},
                     {"memory/resident_bytes", static_cast<double>(train::resident_memory().now)}};
  add_device_memory(env_.engine, metrics);
  if (r.checked_leaves > 0) metrics["throughput/check_seconds"] = r.check_seconds;
  for (const auto& [name, mean] : r.measures) metrics["train/" + name] = mean;
  metrics.insert(r.watched.begin(), r.watched.end());
  if (const auto price = r.goodput.dollars_per_billion_tokens())
    metrics["throughput/dollars_per_billion_tokens"] = *price;
  last_goodput_ = r.goodput;
  add_load_metrics(r.expert_loads, metrics);
  if (const std::string layer = collapsed_layer(r.expert_loads, kLeastEntropy);
      !layer.empty() && !warned_of_load_) {
    warned_of_load_ = true;
    log_warning(
        fmt::format("step {}: {}; model.router_bias_update_rate or model.router_aux_loss_coef balance them",
                    r.step, layer));
  }
  log(r.step, metrics);
}

void Reporter::eval(const EvalReport& r) {
  const auto text = [](const auto& of) {
    return fmt::format("held-out loss {:.4f}", without_nan_sign(of.loss)) +
           (of.bits_per_byte ? fmt::format(", {:.4f} bits per byte", *of.bits_per_byte) : "") +
           (of.pairs ? fmt::format(", accuracy {:.4f}, margin {:.4f}", of.pairs->accuracy, of.pairs->margin)
                     : "");
  };
  Metrics metrics;
  const auto add = [&metrics](const std::string& prefix, const auto& of) {
    metrics[prefix + "loss"] = of.loss;
    if (of.bits_per_byte) metrics[prefix + "bits_per_byte"] = *of.bits_per_byte;
    if (!of.pairs) return;
    metrics[prefix + "accuracy"] = of.pairs->accuracy;
    metrics[prefix + "margin"] = of.pairs->margin;
  };
  log_info(fmt::format("step {}: {}", r.step, text(r)));
  meters_.now().held_out_loss = r.loss, meters_.now().held_out_step = r.step;
  add("eval/", r);
  for (const train::HeldOutPart& part : r.parts) {
    log_info(fmt::format("step {}: {}: {}", r.step, part.component, text(part)));
    add("eval/" + part.component + "/", part);
  }
  add_device_memory(env_.engine, metrics);
  log(r.step, metrics);
}

// A full disk must not stop the run. The error is reported once and training continues.
void Reporter::log(int64_t step, const Metrics& metrics) {
  const Status s = tracker_->log(step, metrics);
  if (s.ok() || tracker_failed_) return;
  tracker_failed_ = true;
  log_warning(fmt::format("metrics are lost from step {}: {}", step, s.error().message()));
}

Status Reporter::finish() {
  if (says_goodput_ && last_goodput_.total() > 0) {
    const auto price = last_goodput_.dollars_per_billion_tokens();
    log_info(fmt::format("goodput {}", goodput_text(last_goodput_)) +
             (price ? fmt::format(", {:.2f} dollars per billion tokens", *price) : ""));
  }
  forecast_.reset();
  progress_.reset();
  if (const runtime::Memory& memory = env_.engine.memory(); memory.use().peak > 0)
    log_info(fmt::format("{}: at most {} bytes of its memory were in use ({:.2f} MiB)", memory.name(),
                         memory.use().peak, mib(memory.use().peak)));
  meters_.write();
  return tracker_->finish();
}

}  // namespace ostro::run
