// ostro diff
#include "ostro/cli/main/commands.h"
#include "ostro/eval/checkpoint_diff.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {

int diff_command(Args args) {
  std::vector<std::string> checkpoints;
  eval::DiffOptions options;
  bool json = false, all = false;
  args.summary(
      "Which parameters of two checkpoints differ, in the order of the tree: how many elements changed, the\n"
      "largest difference, its root mean square, and its norm relative to the first's; other shapes; "
      "options\n"
      "that differ. The bytes are checked against the checkpoints' own hashes. Exit code 0: all tensors are\n"
      "equal (options may differ), or equal under the cast: those of one side are those of the other "
      "rounded\n"
      "to bf16 or f16, as an export rounds them, which the last line says; 1: some differ, 2: they cannot "
      "be\n"
      "compared.");
  args.positional("K", &checkpoints, "two checkpoints, or runs (their newest checkpoints)");
  args.flag("--optimizer", &options.optimizer, "also the optimizer's state");
  args.option("--only", &options.only, "GLOB", "only tensors whose path matches, as \"model/layers/**\"");
  args.flag("--all", &all, "list tensors that are equal, too");
  args.flag("--json", &json, "print JSON, with all tensors");
  if (const auto code = args.parse()) return *code;
  if (checkpoints.size() != 2)
    return report_error(invalid_argument("two checkpoints are compared; " +
                                         std::to_string(checkpoints.size()) +
                                         " are named (see ostro diff --help)"));
  const auto diff = eval::diff_checkpoints(args.context().fs, checkpoints[0], checkpoints[1],
                                           args.context().models, options);
  if (!diff.ok()) {
    report_error(diff.error());
    return kExitUsage;
  }
  const Status written = write_stdout(json ? eval::diff_json(*diff) : eval::diff_table(*diff, all));
  if (!written.ok()) return report_error(written.error());
  return diff->tensors_equal() || diff->cast() != nullptr ? kExitOk : kExitFailed;
}

}  // namespace ostro::cli
