#include "ostro/run/loop/session.h"

#include <fmt/core.h>

#include "ostro/base/aligned.h"
#include "ostro/base/log.h"
#include "ostro/run/loop/reporter.h"
#include "ostro/run/report/run_log.h"
#include "ostro/train/programs/mfu.h"

namespace ostro::run {
namespace {

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

Result<RunOutcome> run_session(const train::TrainConfig& config, const Environment& environment, bool amend) {
  Console console(stderr_writer(), stderr_columns);
  RunLog log(console);
  ASSIGN_OR_RETURN(auto run, Run::open(config, environment, amend));
  if (environment.on_open) environment.on_open();
  RETURN_IF_ERROR(log.open(environment.fs, run->directory() + "/log.txt"));
  ASSIGN_OR_RETURN(const auto reporter, Reporter::create(config, environment, *run, console));
  auto outcome = run->train(reporter->watcher());
  // Lost metrics are no reason to call a finished run failed, nor to hide why one did.
  if (const Status finished = reporter->finish(); !finished.ok())
    log_warning(fmt::format("metrics are lost: {}", finished.error().message()));
  if (!outcome.ok()) log.to_file(LogLevel::kError, outcome.error().message());
  const std::string directory = run->directory();
  const auto plan = run->plan();
  const int64_t parameter_bytes = plan.ok() ? plan->parameters * static_cast<int64_t>(sizeof(float)) : 0;
  // Samples load the parameters again: not beside the state of training, nor beside its blocks.
  run.reset();
  release_kept_memory();
  const bool samples =
      outcome.ok() && outcome->finished && (environment.crew == nullptr || samples_fit(parameter_bytes));
  if (environment.write_page) environment.write_page(directory, samples, environment.stop);
  return outcome;
}

}  // namespace ostro::run
