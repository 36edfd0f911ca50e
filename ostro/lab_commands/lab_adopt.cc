#include "ostro/lab_commands/lab_adopt.h"

#include <fmt/format.h>

#include "ostro/lab/drive/adopt.h"
#include "ostro/lab_commands/lab_services.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

constexpr int64_t kMostAgain = 100'000;

}  // namespace

int lab_adopt(Args args) {
  std::string file;
  lab::AdoptRequest request;
  args.summary(
      "Makes a run or a token store that was made outside of the lab the output of a step. It must be what "
      "the\n"
      "step's fingerprint says: configuration, programs, data and texts are compared. Then a part that the "
      "journal's\n"
      "head draws is done again, and the journal names the step as adopted. The folder is copied.");
  args.positional("FILE", &file, "the plan");
  args.positional("STEP", &request.step, "a training or a step of kind tokens that was not done yet");
  args.positional("FOLDER", &request.folder, "the run's directory, or the store's (data.cache_dir)");
  args.option("--sample", &request.count, "K",
              "steps that are replayed, or documents that are encoded again (default 3)");
  if (const auto code = args.parse()) return *code;
  if (request.count < 1 || request.count > kMostAgain)
    return report_error(invalid_argument(fmt::format("--sample {}: use 1 to {}", request.count, kMostAgain)));
  const Context context = args.context();
  const auto plan = lab::read_plan(context.fs, file);
  if (!plan.ok()) return report_error(plan.error());
  BuildProgressLine line;
  const auto build = build_settings(line);
  if (!build.ok()) return report_error(build.error());
  const lab::Services services = lab_services(context, *build, args.typed());
  const auto adopted = lab::adopt(context, services, *plan, request);
  line.end();
  if (!adopted.ok()) return report_error(adopted.error());
  return exit_after(write_stdout(fmt::format("adopted: {}, content {}\nverified: {}\n", request.step,
                                             lab::short_hash(adopted->content), adopted->verified)));
}

}  // namespace ostro::cli
