// ostro status
#include "ostro/cli/main/commands.h"
#include "ostro/run/report/run_status.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {

int status_command(Args args) {
  std::string path;
  bool json = false;
  args.summary(
      "Shows how a run is doing: step, speed, what its time was spent on, its workers and what happened to "
      "them.\n"
      "Reads files only; the run may be on any number of processes, finished, or dead. Step, length and "
      "loss\n"
      "are the chain's. Speed, times, sessions and workers are from files that no hash covers.");
  args.positional("RUN", &path, "run directory");
  args.flag("--json", &json, "all of it, as one JSON object");
  if (const auto code = args.parse()) return *code;
  const auto status = run::read_status(args.context(), path);
  if (!status.ok()) return report_error(status.error());
  return exit_after(write_stdout(json ? run::status_json(*status) : run::status_text(*status)));
}

}  // namespace ostro::cli
