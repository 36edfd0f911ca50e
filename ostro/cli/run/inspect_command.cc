// ostro inspect
#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/shared/standard_streams.h"
#include "ostro/io/s3/routing_file_system.h"
#include "ostro/train/verify/inspect.h"

namespace ostro::cli {

int inspect_command(Args args) {
  std::string path;
  train::InspectOptions options;
  args.summary(
      "Shows what a run directory (record, chain, checkpoints) or a checkpoint (tree with shapes, axis "
      "names,\n"
      "counts and hashes) holds. Checks the chain, the manifests, and these against the chain; reads no "
      "arrays.");
  args.positional("PATH", &path, "run directory, or one checkpoint of it");
  args.flag("--json", &options.json, "all of it, as one JSON object");
  args.flag("--unchecked", &options.unchecked,
            "show a checkpoint that is not what the chain of its run says");
  if (const auto code = args.parse()) return *code;
  options.models = args.models();

  const Result<std::string> text = train::inspect(io::default_file_system(), path, options);
  if (!text.ok()) return report_error(text.error());
  const Status written = write_stdout(*text);
  return written.ok() ? kExitOk : report_error(written.error());
}

}  // namespace ostro::cli
