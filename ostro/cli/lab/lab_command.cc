// ostro lab run | why
#include <fmt/format.h>

#include <cstdio>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/run/train_run.h"
#include "ostro/cli/shared/progress.h"
#include "ostro/cli/shared/terminal.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/run/loop/signals.h"

namespace ostro::cli {
namespace {

std::string state_line(const lab::StepState& state) {
  return fmt::format("{:<7} {}: {}\n", lab::action_name(state.action), state.step->name, state.reason);
}

int lab_run(Args args) {
  std::string file, check = "status";
  bool dry_run = false;
  lab::RunRequest request;
  args.summary(
      "Does the steps of a plan that are not done yet; of each it says what it does and why. Whatever is "
      "killed,\n"
      "the same command goes on. A step is skipped when the journal has its fingerprint (kind, version, "
      "parameters,\n"
      "contents of its inputs) and its output is unchanged.");
  args.positional("FILE", &file, "the plan (docs/guide/lab.md)");
  args.flag("--dry_run", &dry_run, "say what would be done, and do nothing");
  args.option("--check", &check, "HOW",
              "how outputs are compared with the journal: status (read files whose size or time has changed; "
              "the default) or full (read every byte)");
  args.option("--pin", &request.pin, "SOURCE", "take the files of these sources as they are now");
  if (const auto code = args.parse()) return *code;
  if (check != "status" && check != "full")
    return report_error(invalid_argument(fmt::format("--check {}: use status or full", check)));
  if (dry_run && !request.pin.empty())
    return report_error(invalid_argument("--pin: --dry_run writes nothing; leave out one of them"));
  request.every_byte = check == "full";
  Context context = args.context();
  const auto plan = lab::read_plan(context.fs, file);
  if (!plan.ok()) return report_error(plan.error());
  if (dry_run) {
    const auto state = lab::look_at(context, *plan, request.every_byte);
    if (!state.ok()) return report_error(state.error());
    for (const lab::StepState& step : state->steps) fmt::print("{}", state_line(step));
    return kExitOk;
  }
  const run::StopSignals signals;
  context.stop = [&] { return signals.stop_requested(); };
  BuildProgressLine line;
  auto build = build_settings(line);
  if (!build.ok()) return report_error(build.error());
  const lab::Services services = {.build = *build, .train = [&](const train::TrainConfig& config) {
                                    return train_here(context.on(config.trainer.device), config, args.typed(),
                                                      {}, false);
                                  }};
  request.on_begin = [](const lab::StepState& step) {
    fmt::print("{}", state_line(step));
    std::fflush(stdout);
  };
  request.on_end = [&line](const lab::StepState& step) {
    line.end();
    fmt::print("{}", state_line(step));
    std::fflush(stdout);
  };
  const auto state = lab::run_plan(context, services, *plan, request);
  if (!state.ok()) return report_error(state.error());
  if (state->stopped) {
    fmt::print(stderr, "stopped; the same command goes on\n");
    return kExitInterrupted;
  }
  for (const lab::StepState& step : state->steps)
    if (step.action == lab::Action::kFail)
      (void)report_error(corrupt(fmt::format("step {}: {}", step.step->name, step.reason)));
  if (!state->is_done()) return kExitFailed;
  fmt::print("lab hash: {}\n", state->hash());
  return kExitOk;
}

int lab_why(Args args) {
  std::string file, step;
  args.summary(
      "Says why a step is done, would be done or cannot be done, and what has changed since the last time.");
  args.positional("FILE", &file, "the plan");
  args.positional("STEP", &step, "a step, as `ostro lab run` names it");
  if (const auto code = args.parse()) return *code;
  const auto plan = lab::read_plan(args.context().fs, file);
  if (!plan.ok()) return report_error(plan.error());
  const auto text = lab::why_text(args.context(), *plan, step);
  if (!text.ok()) return report_error(text.error());
  const Status written = write_stdout(*text);
  return written.ok() ? kExitOk : report_error(written.error());
}

constexpr Command kLabVerbs[] = {
    {"run", "do the steps of a plan that are not done yet", lab_run},
    {"why", "say what happens to a step, and why", lab_why},
};

}  // namespace

int lab_command(Args args) { return run_verb(std::move(args), kLabVerbs); }

}  // namespace ostro::cli
