// ostro train
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/run/train_run.h"
#include "ostro/cli/shared/progress.h"
#include "ostro/cli/shared/sim_workers.h"
#include "ostro/convert/export_model.h"
#include "ostro/engines/devices.h"
#include "ostro/run/amend/amend_plan.h"
#include "ostro/run/loop/dry_run.h"
#include "ostro/run/loop/signals.h"

namespace ostro::cli {
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
  args.option("--profile", &profile_text, "steps=FIRST:END",
              "write a trace of the steps from FIRST to before END, counted from 0, into the run directory: "
              "profile-FIRST-END.json, for https://ui.perfetto.dev");
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
  if (dry_run && !profile_text.empty())
    return report_error(invalid_argument("--profile: --dry_run does no step; leave out one of them"));
  if (dry_run) {
    auto engine = args.context().engine();
    if (!engine.ok()) return report_error(engine.error());
    auto workers = sim_workers();
    if (!workers.ok()) return report_error(workers.error());
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
        run::dry_run(args.context().fs, **engine, *config, *workers, sharers, *build, from_step);
    line.end();
    if (!told.ok()) return report_error(told.error());
    std::fputs(told->text.c_str(), stdout);
    return exit_after(told->fits);
  }
  std::optional<train::StepRange> profile;
  if (!profile_text.empty()) {
    const auto range = train::parse_profile(profile_text);
    if (!range.ok()) return report_error(range.error());
    profile = *range;
  }
  Context context = args.context();
  const run::StopSignals signals;
  context.stop = [&] { return signals.stop_requested(); };
  return report_outcome(train_here(context, *config, args.typed(), profile, amend));
}

}  // namespace ostro::cli
