// ostro lab why | record | gc; the other verbs have files of their own
#include "ostro/lab_commands/lab_command.h"

#include <fmt/format.h>

#include "ostro/base/units.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/lab/drive/unneeded.h"
#include "ostro/lab/record/record.h"
#include "ostro/lab_commands/lab_adopt.h"
#include "ostro/lab_commands/lab_board.h"
#include "ostro/lab_commands/lab_check.h"
#include "ostro/lab_commands/lab_corpus.h"
#include "ostro/lab_commands/lab_diff.h"
#include "ostro/lab_commands/lab_kinds.h"
#include "ostro/lab_commands/lab_publish.h"
#include "ostro/lab_commands/lab_register.h"
#include "ostro/lab_commands/lab_replayed.h"
#include "ostro/lab_commands/lab_report.h"
#include "ostro/lab_commands/lab_run.h"
#include "ostro/lab_commands/lab_serve.h"
#include "ostro/lab_commands/lab_step.h"
#include "ostro/lab_commands/lab_without.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/verbs.h"

namespace ostro::cli {
namespace {

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
  return exit_after(write_stdout(*text));
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
      "evaluations, hypotheses, registry. Every byte of the outputs is compared with the journal first. The "
      "same lab gives the "
      "same bytes.");
  args.positional("FILE", &file, "the plan");
  args.option("--out", &out, "FILE", "the SQLite file to write", Args::kRequired);
  args.flag("--measured", &measured,
            "add the sessions of trainings, with their times: other bytes in each lab");
  if (const auto code = args.parse()) return *code;
  return exit_after(write_record(args.context(), file, out, measured));
}

Status collect(const Context& context, const std::string& file, bool dry_run) {
  ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, file));
  ASSIGN_OR_RETURN(const auto outputs, lab::remove_unneeded(context, plan, dry_run));
  std::string text;
  int64_t bytes = 0;
  for (const lab::UnneededOutput& output : outputs) {
    bytes += output.bytes;
    text += fmt::format("{}: {}, {:.1f} MiB\n", output.folder,
                        output.step.empty()
                            ? "begun, and never done"
                            : fmt::format("{}, content {}", output.step, lab::short_hash(output.content)),
                        mib(output.bytes));
  }
  return write_stdout(text + fmt::format("{}: {} output{}, {:.1f} MiB\n",
                                         dry_run ? "would be removed" : "removed", outputs.size(),
                                         outputs.size() == 1 ? "" : "s", mib(bytes)));
}

int lab_gc(Args args) {
  std::string file;
  bool dry_run = false;
  args.summary(
      "Removes the outputs that no step of the plan needs any more: those of steps as they were before, and "
      "what was\n"
      "begun and never done. The journal keeps their hashes, so what is made again is compared. All steps of "
      "the plan\n"
      "must be done.");
  args.positional("FILE", &file, "the plan");
  args.flag("--dry_run", &dry_run, "only say what would be removed");
  if (const auto code = args.parse()) return *code;
  return exit_after(collect(args.context(), file, dry_run));
}

constexpr Command kLabVerbs[] = {
    {"run", "do the steps of a plan that are not done yet", lab_run},
    {"register", "freeze a plan before its results, or check the registry", lab_register},
    {"beacon", "record a public value that is younger than the registration", lab_beacon},
    {"kinds", "list the kinds of steps, and what each parameter changes", lab_kinds},
    {"why", "say what happens to a step, and why", lab_why},
    {"check", "check journal, registry, sources, outputs, report and pages", lab_check},
    {"diff", "say at which step two runs begin to differ, and why", lab_diff},
    {"record", "write what a lab knows as an SQLite file", lab_record},
    {"report", "answer the plan's queries in a report, or check one", lab_report},
    {"site", "write pages about a lab", lab_site},
    {"serve", "serve the pages of a lab, made anew as it goes on", lab_serve},
    {"publish", "write a finished lab as one folder that a stranger can check", lab_publish},
    {"adopt", "make a run or a store from elsewhere the output of a step", lab_adopt},
    {"replayed", "take a statement of somebody who replayed a run", lab_replayed},
    {"gc", "remove outputs that the plan does not need any more", lab_gc},
    {"corpus", "draw a synthetic corpus, with the same bytes on every machine", lab_corpus},
    {"board", "check entries of a track, and keep a board of them", lab_board},
    {"step", "do one step, where `ostro lab run --place` asks for it", lab_step},
    {"without", "train a run again without a document, and compare", lab_without},
};

}  // namespace

int lab_command(Args args) { return run_verb(std::move(args), kLabVerbs); }

}  // namespace ostro::cli
