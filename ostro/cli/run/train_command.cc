// ostro train
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>

#include "ostro/base/log.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/shared/build_progress.h"
#include "ostro/cli/shared/engine_choice.h"
#include "ostro/cli/shared/sim_workers.h"
#include "ostro/io/s3/routing_file_system.h"
#include "ostro/page/html/run_page.h"
#include "ostro/train/report/run_log.h"
#include "ostro/train/run/dry_run.h"
#include "ostro/train/run/reporter.h"
#include "ostro/train/run/run.h"
#include "ostro/train/run/signals.h"

namespace ostro::cli {
namespace {

// The page is for people: whatever keeps it from being written, the run is what it is.
void write_page(io::FileSystem& fs, const std::string& run_directory, const train::TrainConfig& config,
                bool with_samples, const std::function<bool()>& stop) {
  std::unique_ptr<runtime::Engine> sampler;
  if (with_samples)
    if (auto engine = make_engine_for_a_moment(); engine.ok()) sampler = std::move(*engine);
  const auto page = page::write_report(fs, sampler.get(), run_directory, config, stop);
  if (page.ok())
    log_info(fmt::format("{}: the run's page, for a browser", *page));
  else
    log_warning(fmt::format("the run has no new page: {}", page.error().message()));
}

Result<train::RunOutcome> train(const train::TrainConfig& config, const std::vector<std::string>& argv,
                                std::optional<train::StepRange> profile, bool amend) {
  ASSIGN_OR_RETURN(const auto engine, make_engine());
  ASSIGN_OR_RETURN(const int64_t workers, sim_workers());
  const train::StopSignals signals;
  BuildProgressLine line;
  ASSIGN_OR_RETURN(const data::BuildSettings build, build_settings(line));
  train::Environment environment{io::default_file_system(),
                                 *engine,
                                 workers,
                                 [&] { return signals.stop_requested(); },
                                 build,
                                 argv,
                                 profile};
  train::Console console(train::stderr_writer(), train::stderr_columns());
  train::RunLog log(console);
  ASSIGN_OR_RETURN(auto run, train::Run::open(config, environment, amend));
  line.end();
  RETURN_IF_ERROR(log.open(environment.fs, run->directory() + "/log.txt"));
  ASSIGN_OR_RETURN(const auto reporter, train::Reporter::create(config, environment, *run, console));
  auto outcome = run->train(reporter->watcher());
  // Lost metrics are no reason to call a finished run failed, nor to hide why one did.
  if (const Status finished = reporter->finish(); !finished.ok())
    log_warning(fmt::format("metrics are lost: {}", finished.error().message()));
  if (!outcome.ok()) log.to_file(LogLevel::kError, outcome.error().message());
  const std::string directory = run->directory();
  run.reset();  // samples load the parameters again: not beside the state of training
  write_page(environment.fs, directory, config, outcome.ok() && outcome->finished, environment.stop);
  return outcome;
}

}  // namespace

int train_command(Args args) {
  bool dry_run = false, amend = false;
  args.summary("Trains, or goes on where an interrupted run of the same trainer.id was.");
  args.flag(
      "--dry_run", &dry_run,
      "print parameters, memory, FLOPs and data instead of training; the token store is built first where it "
      "is not there");
  args.flag(
      "--amend", &amend,
      "go on from the newest checkpoint with options that have changed since: batches before it stay, the "
      "chain records the difference (docs/data.md, docs/formats/chain.md)");
  std::string profile_text;
  args.option("--profile", &profile_text, "steps=FIRST:END",
              "write a trace of the steps from FIRST to before END, counted from 0, into the run directory: "
              "profile-FIRST-END.json, for https://ui.perfetto.dev");
  args.config();
  if (auto code = args.parse()) return *code;
  auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  if (dry_run && amend)
    return report_error(invalid_argument("--amend: --dry_run looks at no run; leave out one of them"));
  if (dry_run && !profile_text.empty())
    return report_error(invalid_argument("--profile: --dry_run does no step; leave out one of them"));
  if (dry_run) {
    auto engine = make_engine();
    if (!engine.ok()) return report_error(engine.error());
    auto workers = sim_workers();
    if (!workers.ok()) return report_error(workers.error());
    BuildProgressLine line;
    const auto build = build_settings(line);
    if (!build.ok()) return report_error(build.error());
    auto text = train::dry_run(io::default_file_system(), **engine, *config, *workers, *build);
    line.end();
    if (!text.ok()) return report_error(text.error());
    std::fputs(text->c_str(), stdout);
    return kExitOk;
  }
  std::optional<train::StepRange> profile;
  if (!profile_text.empty()) {
    const auto range = train::parse_profile(profile_text);
    if (!range.ok()) return report_error(range.error());
    profile = *range;
  }
  auto outcome = train(*config, args.typed(), profile, amend);
  if (!outcome.ok()) return report_error(outcome.error());
  if (!outcome->finished) {
    fmt::print(stderr, "stopped after step {} and saved; the same command goes on\n", outcome->steps);
    return kExitInterrupted;
  }
  fmt::print("run hash: {}\n", outcome->hash);
  return kExitOk;
}

}  // namespace ostro::cli
