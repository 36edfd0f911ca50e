#include "ostro/train/run/reporter.h"

#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/ir/program/builder.h"
#include "ostro/train/programs/mfu.h"

namespace ostro::train {

double engine_peak(runtime::Engine& engine, DType dtype) {
  if (!engine.is_fast()) return 0;
  constexpr int64_t kSize = 768;
  ir::Program p;
  ir::Builder b(p.body);
  const ir::ValueId a = p.body.add_param({dtype, {{"m", kSize}, {"k", kSize}}}),
                    w = p.body.add_param({dtype, {{"k", kSize}, {"n", kSize}}});
  p.body.results = {b.dot(a, w, {"k"})};
  auto executable = engine.compile(p);
  if (!executable.ok()) return 0;
  const runtime::Buffer x = runtime::Buffer::zeros(p.body.shape(a)),
                        y = runtime::Buffer::zeros(p.body.shape(w));
  return measure_peak([&] {
    (void)(*executable)->run({x, y});
    return 2.0 * kSize * kSize * kSize;
  });
}

Result<std::unique_ptr<Reporter>> Reporter::create(const TrainConfig& config, const Environment& env,
                                                   const Run& run, Console& console) {
  std::unique_ptr<Reporter> r(new Reporter(config, console));
  const std::string& directory = run.directory();
  r->says_goodput_ = env.crew != nullptr || config.trainer.worker_price_per_hour;
  ASSIGN_OR_RETURN(const RunPlan plan, run.plan());
  ASSIGN_OR_RETURN(r->tracker_, make_trackers(env.fs, directory, config.trainer.tracker, run.step()));
  r->flops_per_token_ = plan.flops_per_token;
  r->peak_flops_ = engine_peak(env.engine, compute_dtype(config));
  log_info(fmt::format("{}: {:.2f} M parameters, {} leaves of {} sequences a step, {:.1f} MFLOP a token",
                       directory, static_cast<double>(plan.parameters) * 1e-6,
                       config.trainer.train_batch_size.at(run.step()) / *config.numerics.leaf_examples,
                       *config.numerics.leaf_examples, r->flops_per_token_ * 1e-6));
  return r;
}

Watcher Reporter::watcher() {
  Watcher w;
  w.on_start = [this](int64_t first, int64_t total) {
    progress_ = std::make_unique<Progress>(console_, first, total);
  };
  w.on_step = [this](const StepReport& r) { step(r); };
  w.on_eval = [this](const EvalReport& r) { eval(r); };
  return w;
}

void Reporter::step(const StepReport& r) {
  auto mfu = [&] {
    return model_flops_utilization(flops_per_token_, progress_->tokens_per_second(), peak_flops_);
  };
  progress_->update(r.step, static_cast<int64_t>(r.tokens), [&] {
    return ProgressNumbers{r.loss, mfu(), resident_memory().now, says_goodput_ ? r.goodput.share() : 0};
  });
  Metrics metrics = {{"train/loss", r.loss},
                     {"train/grad_norm", r.gradient_norm},
                     {"train/learning_rate", r.learning_rate},
                     {"throughput/tokens_per_second", progress_->tokens_per_second()},
                     {"throughput/step_seconds", r.step_seconds},
                     {"throughput/data_stall_seconds", r.data_seconds},
                     {"throughput/checkpoint_stall_seconds", r.save_seconds},
                     {"throughput/mfu", mfu()},
                     {"throughput/goodput", r.goodput.share()},
                     {"memory/resident_bytes", static_cast<double>(resident_memory().now)}};
  if (const auto price = r.goodput.dollars_per_billion_tokens())
    metrics["throughput/dollars_per_billion_tokens"] = *price;
  last_goodput_ = r.goodput;
  log(r.step, metrics);
}

void Reporter::eval(const EvalReport& r) {
  const auto text = [](double loss, const std::optional<double>& bits) {
    return fmt::format("held-out loss {:.4f}", loss) +
           (bits ? fmt::format(", {:.4f} bits per byte", *bits) : "");
  };
  log_info(fmt::format("step {}: {}", r.step, text(r.loss, r.bits_per_byte)));
  Metrics metrics = {{"eval/loss", r.loss}};
  if (r.bits_per_byte) metrics["eval/bits_per_byte"] = *r.bits_per_byte;
  for (const HeldOutPart& part : r.parts) {
    log_info(fmt::format("step {}: {}: {}", r.step, part.component, text(part.loss, part.bits_per_byte)));
    metrics["eval/" + part.component + "/loss"] = part.loss;
    if (part.bits_per_byte) metrics["eval/" + part.component + "/bits_per_byte"] = *part.bits_per_byte;
  }
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
  progress_.reset();
  return tracker_->finish();
}

}  // namespace ostro::train
