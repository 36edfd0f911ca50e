// ostro lab step
#include "ostro/lab_commands/lab_step.h"

#include <fmt/format.h>

#include "ostro/lab/places/do_task.h"
#include "ostro/lab_commands/lab_services.h"
#include "ostro/run/notice/signals.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {

int lab_step(Args args) {
  std::string file;
  args.summary(
      "Does one step of a lab, as a task says, and leaves the answer beside it. Jobs of Slurm and tasks of "
      "Ray start\n"
      "this for `ostro lab run --place`; nobody else has to.");
  args.positional("TASK", &file, "the file jobs/F/task.json of the lab's folder");
  if (const auto code = args.parse()) return *code;
  Context context = args.context();
  const lab::TaskFiles files(file);
  const auto task = lab::read_task(context.fs, files);
  if (!task.ok()) return report_error(task.error());
  if (!*task)
    return report_error(not_found(fmt::format(
        "{}: is not there: this machine must see the lab's folder under the same path as the one on which "
        "`ostro lab run` works; or the step is no longer wanted",
        file)));
  if (const Status prints = lab::print_to(files.log, lab::LogBegin::kBehind); !prints.ok())
    return report_error(prints.error());
  const run::StopSignals signals;
  lab::StopFile asked(context.fs, files.stop);
  context.stop = [&] { return signals.stop_requested() || asked.is_there(); };
  BuildProgressLine line;
  const auto build = build_settings(line);
  if (!build.ok()) return report_error(build.error());
  const lab::Services services = lab_services(context, *build, (*task)->argv);
  if (const Status done = lab::do_task(context, services, files, **task); !done.ok())
    return report_error(done.error());
  return context.stop() ? kExitInterrupted : kExitOk;
}

}  // namespace ostro::cli
