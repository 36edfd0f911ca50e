#include "ostro/cli/run/train_run.h"

#include <fmt/core.h>

#include <cstdio>

#include "ostro/base/log.h"
#include "ostro/cli/main/args.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/shared/engine_choice.h"
#include "ostro/cli/shared/progress.h"
#include "ostro/convert/import_hf.h"
#include "ostro/io/s3/routing_file_system.h"
#include "ostro/page/html/run_page.h"
#include "ostro/run/loop/reporter.h"
#include "ostro/run/report/run_log.h"
#include "ostro/train/programs/mfu.h"

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

// Samples take all parameters into this process. Where several share the state, they are only made if that
// takes no more memory than training did, or hardly more. `bytes`: of the parameters.
bool samples_fit(int64_t bytes) {
  constexpr int64_t kHardly = int64_t{16} << 20;
  const train::ResidentMemory memory = train::resident_memory();
  if (memory.now + 2 * bytes <= memory.peak + kHardly) return true;
  log_info(
      fmt::format("the run's page has no samples: the parameters take {:.2f} GB in one process, more than "
                  "training took; ostro train with the same configuration makes them",
                  static_cast<double>(bytes) * 1e-9));
  return false;
}

}  // namespace

Result<run::RunOutcome> run_session(const TrainSession& session, runtime::Engine& engine) {
  const train::TrainConfig& config = session.config;
  BuildProgressLine line;
  ASSIGN_OR_RETURN(const data::BuildSettings build, build_settings(line));
  const run::Environment environment{.fs = io::default_file_system(),
                                     .engine = engine,
                                     .workers = session.sim_workers,
                                     .stop = session.stop,
                                     .build = build,
                                     .argv = session.argv,
                                     .profile = session.profile,
                                     .crew = session.crew,
                                     .import_model = [&](const std::string& from, const std::string& to) {
                                       return convert::import_beginning(from, to, config.model.choices());
                                     }};
  run::Console console(run::stderr_writer(), run::stderr_columns());
  run::RunLog log(console);
  ASSIGN_OR_RETURN(auto run, run::Run::open(config, environment, session.amend));
  line.end();
  RETURN_IF_ERROR(log.open(environment.fs, run->directory() + "/log.txt"));
  ASSIGN_OR_RETURN(const auto reporter, run::Reporter::create(config, environment, *run, console));
  auto outcome = run->train(reporter->watcher());
  // Lost metrics are no reason to call a finished run failed, nor to hide why one did.
  if (const Status finished = reporter->finish(); !finished.ok())
    log_warning(fmt::format("metrics are lost: {}", finished.error().message()));
  if (!outcome.ok()) log.to_file(LogLevel::kError, outcome.error().message());
  const std::string directory = run->directory();
  const auto plan = run->plan();
  const int64_t parameter_bytes = plan.ok() ? plan->parameters * static_cast<int64_t>(sizeof(float)) : 0;
  run.reset();  // samples load the parameters again: not beside the state of training
  const bool samples =
      outcome.ok() && outcome->finished && (session.crew == nullptr || samples_fit(parameter_bytes));
  write_page(environment.fs, directory, config, samples, environment.stop);
  return outcome;
}

int report_outcome(const Result<run::RunOutcome>& outcome) {
  if (!outcome.ok()) return report_error(outcome.error());
  if (!outcome->finished) {
    fmt::print(stderr, "stopped after step {} and saved; the same command goes on\n", outcome->steps);
    return kExitInterrupted;
  }
  fmt::print("run hash: {}\n", outcome->hash);
  return kExitOk;
}

}  // namespace ostro::cli
