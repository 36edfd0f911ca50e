// ostro fork
#include <fmt/core.h>

#include "ostro/audit/sampled.h"
#include "ostro/cli/main/commands.h"
#include "ostro/io/files/path.h"
#include "ostro/run/fork/fork.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {

int fork_command(Args args) {
  run::ForkRequest request;
  args.summary(
      "Begins a new run with the state that another run had after a step: parameters and the optimizer's\n"
      "arrays. The new run's chain names the other run's head there. Options are those of the other run, or\n"
      "of --config; what an amend may change may change, and the data, too. Steps go on with the next\n"
      "number, and schedules count from step 0. `ostro train --config OUT/config.yaml` then trains.");
  args.positional("RUN", &request.parent, "run directory of the parent, or a bundle; it is only read");
  args.option("--step", &request.step, "N",
              "a step whose state the parent's chain names: a permanent checkpoint", Args::kRequired);
  args.option("--out", &request.out, "RUN2", "run directory of the fork; it must hold no other run",
              Args::kRequired);
  args.config(!Args::kRequired);
  if (const auto code = args.parse()) return *code;
  io::FileSystem& fs = args.context().fs;
  const auto record = audit::record_folder(fs, request.parent);
  if (!record.ok()) return report_error(record.error());
  request.parent = *record;
  const auto config = args.has_config()
                          ? args.load_config()
                          : run::config_of_parent(fs, request, args.overrides(), args.context().models);
  if (!config.ok()) return report_error(config.error());
  BuildProgressLine line;
  const auto build = build_settings(line);
  if (!build.ok()) return report_error(build.error());
  const auto forked = run::fork_run(fs, request, *config, *build);
  line.end();
  if (!forked.ok()) return report_error(forked.error());
  return exit_after(write_stdout(
      fmt::format("{} {} {} after step {} (state {})\nto train: ostro train --config {}\n", request.out,
                  forked->was_there ? "is already this fork of" : "is a fork of", request.parent,
                  request.step, forked->state, io::join_path(request.out, "config.yaml"))));
}

}  // namespace ostro::cli
