// ostro train
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "ostro/base/log.h"
#include "ostro/cli/main/commands.h"
#include "ostro/convert/export_model.h"
#include "ostro/engines/devices.h"
#include "ostro/monitor/monitor.h"
#include "ostro/run/amend/amend_plan.h"
#include "ostro/run/loop/dry_run.h"
#include "ostro/run/notice/grace.h"
#include "ostro/run/notice/notice_watch.h"
#include "ostro/run/notice/signals.h"
#include "ostro/run/report/meters.h"
#include "ostro/shell/shared/profile_option.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/shared/sim_workers.h"
#include "ostro/shell/shared/slice_sizes.h"
#include "ostro/shell/shared/train_run.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

std::string end_of(const Result<run::RunOutcome>& outcome) {
  if (!outcome.ok()) return "failed: " + outcome.error().message();
  return fmt::format("{} after step {}", outcome->finished ? "finished" : "saved and stopped",
                     outcome->steps);
}

// Trains in this process, watched by a monitor, until a signal or a notice asks to save and to end.
int train_watched(Context context, const train::TrainConfig& config, const std::vector<std::string>& typed,
                  std::optional<train::StepRange> profile, bool amend) {
  const run::StopSignals signals;
  if (const auto notice = run::notice_now(config.trainer)) {
    fmt::print(stderr, "nothing is trained on this machine: {}\n", *notice);
    return kExitInterrupted;
  }
  const auto monitor = monitor::Monitor::create(context.fs, config);
  if (!monitor.ok()) return report_error(monitor.error());
  const run::NoticeWatch notices(
      config.trainer, {.signalled = [&] { return signals.stop_requested(); },
                       .on_ask =
                           [&](const std::string& why) {
                             (*monitor)->note("notice",
                                              why.empty() ? "a signal asks to save and to end" : why);
                             if (!why.empty())
                               log_info(fmt::format("saving after this step, and then this ends: {}", why));
                           },
                       .on_late =
                           [&] {
                             const std::string late =
                                 fmt::format("the state was not saved within {} s (trainer.notice_grace)",
                                             config.trainer.notice_grace->seconds);
                             (*monitor)->note("late", late);
                             log_error(late);
                           }});
  context.stop = [&] { return notices.asked() || signals.stop_requested(); };
  const auto outcome =
      train_here(context, config, typed, profile, amend, {}, [&] { (*monitor)->begin("ostro train", {}); });
  (*monitor)->end(end_of(outcome));
  return report_outcome(outcome);
}

}  // namespace

int train_command(Args args) {
  bool dry_run = false, amend = false;
  args.summary("Trains, or goes on where an interrupted run of the same trainer.id was.");
  args.flag(
      "--dry_run", &dry_run,
      "print parameters, memory, FLOPs, time and data instead of training, and fail if it does not fit into "
      "memory; the token store is built first where it is not there; with --amend also what it would change");
  args.flag(
      "--amend", &amend,
      "go on from the newest checkpoint with options that have changed since: batches before it stay, the "
      "chain records the difference (docs/guide/data.md, docs/reference/formats/chain.md); components of "
      "data "
      "may be added");
  std::string profile_text;
  take_profile(args, &profile_text);
  std::optional<int64_t> write_rate;
  args.option(
      "--write_rate", &write_rate, "MB/s",
      "with --dry_run and trainer.notice_grace: how fast checkpoints are written, in millions of bytes "
      "a second; without it that of the run's last checkpoint, or what is measured in trainer.log_dir");
  std::optional<std::string> initialize_from;
  args.option("--initialize_from", &initialize_from, "PATH",
              "short for --trainer.initialize_from: the checkpoint, run or Hugging Face directory whose "
              "parameters the run begins with");
  args.device();
  args.config();
  if (auto code = args.parse()) return *code;
  auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  if (initialize_from) {  // an empty path is one that was forgotten, not none
    resolve_hub_name(initialize_from, io::HubFiles::kModel, "trainer.initialize_from");
    config->trainer.initialize_from = initialize_from;
    if (const Status valid = config->trainer.validate(); !valid.ok()) return report_error(valid.error());
  }
  convert::warn_of_adapters(*config);
  if (write_rate && (!dry_run || *write_rate < 1))
    return report_error(
        invalid_argument(fmt::format("--write_rate {}: a number from 1 on, beside --dry_run", *write_rate)));
  if (dry_run && !profile_text.empty())
    return report_error(invalid_argument("--profile: --dry_run does no step; leave out one of them"));
  if (dry_run) {
    auto engine = args.context().engine();
    if (!engine.ok()) return report_error(engine.error());
    auto workers = sim_workers();
    if (!workers.ok()) return report_error(workers.error());
    const auto slices = sim_slices(*workers);
    if (!slices.ok()) return report_error(slices.error());
    int64_t sharers = 1;
    if (*workers > 1) {
      const auto devices = engines::devices_of_workers(
          std::vector<std::string>(static_cast<size_t>(*workers), config->trainer.device));
      if (!devices.ok()) return report_error(devices.error());
      sharers = devices->front().sharers;
    }
    BuildProgressLine line;
    const auto build = build_settings(line);
    if (!build.ok()) return report_error(build.error());
    int64_t from_step = 0;
    if (amend) {
      auto plan = run::plan_amend(args.context().fs, *config, *build);
      line.end();
      if (!plan.ok()) return report_error(plan.error());
      std::fputs(plan->text.c_str(), stdout);
      *config = std::move(plan->config);
      from_step = plan->step;
    }
    const auto told =
        run::dry_run(args.context().fs, **engine, *config, *workers, sharers, *build, from_step, *slices);
    line.end();
    if (!told.ok()) return report_error(told.error());
    std::fputs(told->text.c_str(), stdout);
    if (!config->trainer.notice_grace) return exit_after(told->fits);
    const auto rate =
        run::save_rate(args.context().fs, *config,
                       write_rate ? std::optional(static_cast<double>(*write_rate) * 1e6) : std::nullopt);
    if (!rate.ok()) return report_error(rate.error());
    const auto meters = run::read_meters(args.context().fs, train::run_directory(*config));
    const bool measured = meters.ok() && meters->median_seconds > 0;
    const run::GraceFit grace = run::grace_fit(static_cast<double>(config->trainer.notice_grace->seconds),
                                               measured ? meters->median_seconds : told->step_seconds,
                                               static_cast<double>(told->state), *rate);
    std::fputs(grace.text.c_str(), stdout);
    return exit_after(told->fits.ok() ? grace.fits : told->fits);
  }
  const auto profile = profile_range(profile_text);
  if (!profile.ok()) return report_error(profile.error());
  return train_watched(args.context(), *config, args.typed(), *profile, amend);
}

}  // namespace ostro::cli
