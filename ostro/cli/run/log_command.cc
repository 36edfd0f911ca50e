// ostro log
#include "ostro/cli/main/commands.h"
#include "ostro/lineage/lineage.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {

int log_command(Args args) {
  std::string run;
  bool json = false;
  args.summary(
      "Shows a run's history, the oldest first: the runs that it goes on with, what each began with, the\n"
      "amends with what they changed, permanent checkpoints, and the forks in the same folder. Reads chains\n"
      "alone, and checks that each has what the next one names; `ostro verify` checks the states.");
  args.positional("RUN", &run, "run directory, or a bundle");
  args.flag("--json", &json, "as one JSON object");
  if (const auto code = args.parse()) return *code;
  const auto history = lineage::read_lineage(args.context().fs, run, args.context().models);
  if (!history.ok()) return report_error(history.error());
  return exit_after(write_stdout(json ? lineage::lineage_json(*history) : lineage::lineage_text(*history)));
}

}  // namespace ostro::cli
