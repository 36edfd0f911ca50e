// ostro verify
#include <fmt/core.h>

#include <cstdio>

#include <nlohmann/json.hpp>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/shared/engine_choice.h"
#include "ostro/cli/shared/sim_workers.h"
#include "ostro/io/s3/routing_file_system.h"
#include "ostro/train/report/console.h"
#include "ostro/train/verify/verify.h"

namespace ostro::cli {
namespace {

void print_json(const train::VerifyReport& r) {
  nlohmann::ordered_json j = {
      {"equal", r.equal}, {"start_step", r.start_step}, {"last_step", r.last_step}, {"entries", r.entries}};
  if (!r.equal) {
    j["different_step"] = r.different_step;
    j["what"] = r.what;
    j["recorded"] = r.recorded;
    j["replayed"] = r.replayed;
  }
  fmt::print("{}\n", j.dump());
}

}  // namespace

int verify_command(Args args) {
  std::string run;
  train::VerifyOptions options;
  std::optional<int64_t> from, to;
  bool json = false;
  args.summary(
      "Replays from the newest checkpoint at or before --from_step that the chain records and that can be\n"
      "read (damaged ones are passed over with a warning; without any, from the seed's initial state) to\n"
      "--to_step, and compares every chain entry. Exit 0: equal, 1: differs, 2: cannot compare.");
  args.positional("RUN", &run, "run directory");
  args.option("--from_step", &from, "A", "step to begin at or before (default 0: the seed's initial state)");
  args.option("--to_step", &to, "B", "step to end at (default: the last of the chain)");
  args.option("--cache", &options.cache, "DIR",
              "the token store, when it is no longer where the run used it (data.cache_dir)");
  args.flag("--json", &json, "print the result as JSON");
  if (auto code = args.parse()) return *code;
  options.from_step = from.value_or(0);
  options.to_step = to;
  const bool terminal = train::stderr_columns() > 0 && !json;
  if (terminal)
    options.on_step = [](int64_t step, int64_t first, int64_t last) {
      fmt::print(stderr, "\rreplayed step {} of {} to {} ", step, first, last);
      if (step == last) std::fputc('\n', stderr);
    };
  auto cannot = [](const Error& e) {
    report_error(e);
    return static_cast<int>(kExitUsage);
  };
  auto engine = make_engine();
  if (!engine.ok()) return cannot(engine.error());
  auto workers = sim_workers();
  if (!workers.ok()) return cannot(workers.error());
  options.workers = *workers;
  auto report = train::verify_run(io::default_file_system(), **engine, run, options, args.models());
  if (!report.ok()) return cannot(report.error());
  if (json)
    print_json(*report);
  else if (report->equal)
    fmt::print("equal: steps {} to {} replayed, {} chain entries compared\n", report->start_step + 1,
               report->last_step, report->entries);
  else
    fmt::print("differs at step {}: {} is {} in the chain, {} replayed\n", report->different_step,
               report->what, report->recorded, report->replayed);
  return report->equal ? kExitOk : kExitFailed;
}

}  // namespace ostro::cli
