#include "ostro/shell/shared/train_run.h"

#include <fmt/core.h>

#include <cstdio>

#include "ostro/base/log.h"
#include "ostro/base/watch/said.h"
#include "ostro/bundle/check/check_source.h"
#include "ostro/convert/import/import_hf.h"
#include "ostro/page/html/run_page.h"
#include "ostro/shell/shared/sim_workers.h"
#include "ostro/shell/shared/slice_sizes.h"
#include "ostro/shell/words/args.h"
#include "ostro/shell/words/exit_code.h"
#include "ostro/train/step/run_files.h"

namespace ostro::cli {
namespace {

// The page is for people: whatever keeps it from being written, the run is what it is.
void write_page(const Context& context, const std::string& run_directory, const train::TrainConfig& config,
                bool with_samples, const std::function<bool()>& stop) {
  std::unique_ptr<runtime::Engine> sampler;
  if (with_samples)
    if (auto engine = context.engine_for_a_moment(); engine.ok()) sampler = std::move(*engine);
  const auto page = page::write_report(context.fs, sampler.get(), run_directory, config, stop);
  if (page.ok())
    log_info(fmt::format("{}: the run's page, for a browser", *page));
  else
    log_warning(fmt::format("the run has no new page: {}", page.error().message()));
}

}  // namespace

Result<run::Environment> training_environment(const Context& context, runtime::Engine& engine,
                                              const train::TrainConfig& config, BuildProgressLine& line) {
  ASSIGN_OR_RETURN(data::BuildSettings build, build_settings(line));
  std::shared_ptr<io::FileSystem> scratch = train::scratch_files(context.fs, config);
  return run::Environment{
      .fs = scratch != nullptr ? *scratch : context.fs,
      .engine = engine,
      .stop = context.stop,
      .build = std::move(build),
      .argv = {},
      .import_model = [&context](const std::string& from,
                                 const std::string& to) -> Result<std::optional<std::string>> {
        RETURN_IF_ERROR(bundle::check_source(context, from));
        return convert::import_beginning(context, from, to);
      },
      .on_open = [&line] { line.end(); },
      .write_page =
          [&](const std::string& directory, bool with_samples, const std::function<bool()>& stop) {
            write_page(context, directory, config, with_samples, stop);
          },
      .refresh_page =
          [&](const std::string& directory) { return page::refresh_report(context.fs, directory, config); },
      .own_files = scratch};
}

Result<run::RunOutcome> train_here(const Context& context, const train::TrainConfig& config,
                                   std::vector<std::string> argv, std::optional<train::StepRange> profile,
                                   bool amend, std::optional<int64_t> workers,
                                   const std::function<void()>& on_open, std::optional<int64_t> until) {
  ASSIGN_OR_RETURN(const auto engine, context.engine());
  ASSIGN_OR_RETURN(const int64_t usual_workers, sim_workers());
  BuildProgressLine line;
  ASSIGN_OR_RETURN(run::Environment environment, training_environment(context, *engine, config, line));
  environment.workers = workers.value_or(usual_workers);
  if (!workers) {
    ASSIGN_OR_RETURN(environment.slices, sim_slices(usual_workers));
  }
  environment.argv = std::move(argv);
  environment.profile = profile;
  environment.until = until;
  environment.on_open = [&] {
    line.end();
    if (on_open) on_open();
  };
  return run::run_session(config, environment, amend);
}

int report_outcome(const Result<run::RunOutcome>& outcome) {
  if (!outcome.ok()) return report_error(outcome.error());
  if (!outcome->finished) {
    const std::string text =
        fmt::format("stopped after step {} and saved; the same command goes on\n", outcome->steps);
    std::fputs(text.c_str(), stderr);
    add_said(text);
    return kExitInterrupted;
  }
  fmt::print("run hash: {}\n", outcome->hash);
  return kExitOk;
}

}  // namespace ostro::cli
