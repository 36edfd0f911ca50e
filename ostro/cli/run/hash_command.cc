// ostro hash
#include "ostro/audit/inspect.h"
#include "ostro/cli/main/commands.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {

int hash_command(Args args) {
  std::string run;
  args.summary("Checks a run's hash chain and prints its head: the run hash. Equal hashes, equal runs.");
  args.positional("RUN", &run, "run directory");
  if (const auto code = args.parse()) return *code;

  const Result<std::string> hash = audit::run_hash(args.context().fs, run);
  if (!hash.ok()) return report_error(hash.error());
  return exit_after(write_stdout(*hash + "\n"));
}

}  // namespace ostro::cli
