// ostro lab run | why | record | report | site
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/run/train_run.h"
#include "ostro/cli/shared/progress.h"
#include "ostro/cli/shared/terminal.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/lab/record/record.h"
#include "ostro/lab/report/report.h"
#include "ostro/lab/site/site.h"
#include "ostro/run/loop/signals.h"

namespace ostro::cli {
namespace {

std::string state_line(const lab::StepState& state) {
  return fmt::format("{:<7} {}: {}\n", lab::action_name(state.action), state.step->name, state.reason);
}

constexpr int64_t kMostJobs = 256;

int lab_run(Args args) {
  std::string file, check = "status";
  bool dry_run = false, sanity = false;
  int64_t jobs = 1;
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
  args.option("-j,--jobs", &jobs, "N",
              "do up to N steps side by side, each in a process with its share of the threads; what they "
              "print is in the folder logs. The outputs are those of -j 1");
  args.option("--audit", &request.audit, "SHARE",
              "do a drawn share of the skipped steps again, from 0 to 1, and compare; two outputs of one "
              "fingerprint are an error, and nothing goes on from there");
  args.flag("--sanity", &sanity,
            "the same steps small, as a trial: the first 200 rows of each source, trainings of at most 20 "
            "steps, in a folder of their own (NAME.sanity.lab)");
  args.option("--pin", &request.pin, "SOURCE", "take the files of these sources as they are now");
  if (const auto code = args.parse()) return *code;
  if (check != "status" && check != "full")
    return report_error(invalid_argument(fmt::format("--check {}: use status or full", check)));
  if (dry_run && !request.pin.empty())
    return report_error(invalid_argument("--pin: --dry_run writes nothing; leave out one of them"));
  if (jobs < 1 || jobs > kMostJobs)
    return report_error(invalid_argument(fmt::format("-j {}: use 1 to {}", jobs, kMostJobs)));
  if (!(request.audit >= 0 && request.audit <= 1))
    return report_error(invalid_argument(
        fmt::format("--audit {}: use a share from 0 to 1, for instance 0.05", request.audit)));
  if (dry_run && request.audit > 0)
    return report_error(invalid_argument("--audit: --dry_run does no step; leave out one of them"));
  request.every_byte = check == "full";
  request.jobs = static_cast<int>(jobs);
  Context context = args.context();
  auto plan = lab::read_plan(context.fs, file);
  if (!plan.ok()) return report_error(plan.error());
  plan->sanity = sanity;
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
  request.threads = build->threads_or_all();
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
      (void)report_error(
          corrupt(fmt::format("{}: step {}: {}", step.step->where, step.step->name, step.reason)));
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

Status write_record(const Context& context, const std::string& file, const std::string& out, bool measured) {
  ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, file));
  ASSIGN_OR_RETURN(const lab::LabState state, lab::finished_lab(context, plan, /*every_byte=*/true));
  ASSIGN_OR_RETURN(const lab::Database record, lab::make_record(context.fs, plan, state, measured));
  ASSIGN_OR_RETURN(const std::string bytes, record.bytes());
  return io::write_file_atomically(context.fs, out, bytes);
}

int lab_record(Args args) {
  std::string file, out;
  bool measured = false;
  args.summary(
      "Writes what a lab knows as an SQLite file: steps, sources, stores, runs with configuration and "
      "chain,\n"
      "evaluations. Every byte of the outputs is compared with the journal first. The same lab gives the "
      "same "
      "bytes.");
  args.positional("FILE", &file, "the plan");
  args.option("--out", &out, "FILE", "the SQLite file to write", Args::kRequired);
  args.flag("--measured", &measured,
            "add the sessions of trainings, with their times: other bytes in each lab");
  if (const auto code = args.parse()) return *code;
  const Status written = write_record(args.context(), file, out, measured);
  return written.ok() ? kExitOk : report_error(written.error());
}

Status report(const Context& context, const std::string& file, std::string out, bool check) {
  ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, file));
  ASSIGN_OR_RETURN(const lab::LabState state, lab::finished_lab(context, plan, /*every_byte=*/true));
  ASSIGN_OR_RETURN(const std::vector<lab::ReportFile> files, lab::make_report(context.fs, plan, state));
  if (out.empty()) out = io::join_path(plan.directory(), "report");
  if (!check) {
    RETURN_IF_ERROR(lab::write_files(context.fs, out, files));
    return write_stdout(fmt::format("{}: {} files\n", out, files.size()));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> wrong, lab::check_report(context.fs, out, files));
  if (!wrong.empty()) return corrupt(fmt::format("{}", fmt::join(wrong, "\nerror: ")));
  return write_stdout(fmt::format("equal: the {} files of {} are what the lab gives\n", files.size(), out));
}

int lab_report(Args args) {
  std::string file, out;
  bool check = false;
  args.summary(
      "Answers the plan's queries from the record of its lab, and writes values.json, figures, report.html "
      "and\n"
      "record.sqlite. Every byte of the outputs is compared with the journal first.");
  args.positional("FILE", &file, "the plan");
  args.option("--out", &out, "DIR",
              "where to write, or what to check (default: NAME.lab/report beside the plan)");
  args.flag("--check", &check,
            "write nothing: make the report again, and name each file that is another one");
  if (const auto code = args.parse()) return *code;
  const Status done = report(args.context(), file, out, check);
  return done.ok() ? kExitOk : report_error(done.error());
}

Status write_site(const Context& context, const std::string& file, const std::string& out) {
  ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, file));
  ASSIGN_OR_RETURN(const lab::LabState state, lab::look_at(context, plan));
  ASSIGN_OR_RETURN(const std::vector<lab::ReportFile> files, lab::make_site(context.fs, plan, state));
  RETURN_IF_ERROR(lab::write_files(context.fs, out, files));
  return write_stdout(fmt::format("{}: {} files; {}/index.html is the first page\n", out, files.size(), out));
}

int lab_site(Args args) {
  std::string file, out;
  args.summary(
      "Writes pages about a lab, finished or not: steps, runs beside each other, each run, data, and the "
      "report "
      "of\n"
      "a finished lab. They open from a folder, need no scripts and load nothing.");
  args.positional("FILE", &file, "the plan");
  args.option("--out", &out, "DIR", "the folder to write", Args::kRequired);
  if (const auto code = args.parse()) return *code;
  const Status done = write_site(args.context(), file, out);
  return done.ok() ? kExitOk : report_error(done.error());
}

constexpr Command kLabVerbs[] = {
    {"run", "do the steps of a plan that are not done yet", lab_run},
    {"why", "say what happens to a step, and why", lab_why},
    {"record", "write what a lab knows as an SQLite file", lab_record},
    {"report", "answer the plan's queries in a report, or check one", lab_report},
    {"site", "write pages about a lab", lab_site},
};

}  // namespace

int lab_command(Args args) { return run_verb(std::move(args), kLabVerbs); }

}  // namespace ostro::cli
