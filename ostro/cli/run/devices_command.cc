// ostro devices
#include <fmt/format.h>

#include "ostro/cli/main/commands.h"
#include "ostro/engines/devices.h"
#include "ostro/engines/devices_text.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

// Exit code 1 when an operation differs.
int check_device(const std::string& device, int64_t cases) {
  constexpr int64_t kMost = int64_t{1} << 32;
  if (cases < 64 || cases > kMost)
    return report_error(invalid_argument(fmt::format("--cases {}: use 64 to {}", cases, kMost)));
  const auto rows = engines::check_device(device, cases);
  if (!rows.ok()) return report_error(rows.error());
  std::string text;
  bool equal = true;
  for (const auto& row : *rows) {
    text += fmt::format("{:<22} {:>11} cases, {} differ{}{}\n", row.name, row.cases, row.differ,
                        row.first.empty() ? "" : "; ", row.first);
    equal = equal && row.differ == 0;
  }
  if (const Status written = write_stdout(text); !written.ok()) return report_error(written.error());
  return equal ? kExitOk : kExitFailed;
}

}  // namespace

int devices_command(Args args) {
  bool json = false;
  std::optional<std::string> check;
  std::optional<int64_t> cases;
  args.summary(
      "Prints what this machine has to train on: its processors and its GPUs, and what is missing for the "
      "latter, with\n"
      "the command that brings it. Exit code 0, also where there is no GPU.");
  args.option("--check", &check, "DEVICE",
              "instead: compare the arithmetic of this GPU with that of the processors; exit code 1: an "
              "operation differs");
  args.option("--cases", &cases, "N",
              "--check: cases of every operation; 4294967296 are all numbers of an operand");
  args.flag("--json", &json, "print it as JSON; null: not known, or not there");
  if (const auto code = args.parse()) return *code;
  if (check && json)
    return report_error(
        invalid_argument("--json beside --check: the comparison is printed as text; leave out one"));
  if (!check && cases)
    return report_error(invalid_argument("--cases is for --check; name a GPU, as in --check cuda:0"));
  if (check) return check_device(*check, cases.value_or(int64_t{1} << 20));
  const engines::Devices devices = engines::find_devices();
  return exit_after(write_stdout(json ? engines::devices_json(devices) : engines::devices_text(devices)));
}

}  // namespace ostro::cli
