// ostro lab why | record | report | gc; the other verbs have files of their own
#include "ostro/lab_commands/lab_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ostro/base/units.h"
#include "ostro/config/options.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/lab/drive/unneeded.h"
#include "ostro/lab/record/record.h"
#include "ostro/lab/report/report.h"
#include "ostro/lab_commands/lab_adopt.h"
#include "ostro/lab_commands/lab_board.h"
#include "ostro/lab_commands/lab_corpus.h"
#include "ostro/lab_commands/lab_kinds.h"
#include "ostro/lab_commands/lab_publish.h"
#include "ostro/lab_commands/lab_register.h"
#include "ostro/lab_commands/lab_replayed.h"
#include "ostro/lab_commands/lab_run.h"
#include "ostro/lab_commands/lab_serve.h"
#include "ostro/lab_commands/lab_without.h"
#include "ostro/paper/answers.h"
#include "ostro/paper/paper.h"
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

struct ReportOptions {
  std::string out, value;
  bool check = false, latex = false;
};

Status print_value(const Context& context, const lab::Plan& plan, const lab::LabState& state,
                   const std::string& name) {
  ASSIGN_OR_RETURN(const lab::ReportData data, lab::report_data(context.fs, plan, state));
  std::vector<std::string> names;
  for (const lab::Quoted& value : data.values.values) {
    if (value.query.name == name) {
      ASSIGN_OR_RETURN(const std::string words, paper::value_words(data, value));
      return write_stdout(fmt::format("{}\n{}", lab::value_text(value.value), words));
    }
    names.push_back(value.query.name);
  }
  const std::string nearest = config::nearest_name(name, names);
  return invalid_argument(
      fmt::format("--value: the plan has no query \"{}\"{}", name,
                  nearest.empty() ? "" : fmt::format("; the nearest is \"{}\"", nearest)));
}

Status report(const Context& context, const std::string& file, ReportOptions options) {
  ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, file));
  ASSIGN_OR_RETURN(const lab::LabState state, lab::finished_lab(context, plan, /*every_byte=*/true));
  if (!options.value.empty()) return print_value(context, plan, state, options.value);
  std::string& out = options.out;
  if (out.empty()) out = io::join_path(plan.directory(), "report");
  bool latex = options.latex;
  if (options.check && !latex) {
    ASSIGN_OR_RETURN(latex, paper::has_latex(context.fs, out));
  }
  ASSIGN_OR_RETURN(const paper::Paper made, paper::make_paper(context.fs, plan, state, latex));
  if (!options.check) {
    RETURN_IF_ERROR(lab::write_files(context.fs, out, made.files));
    std::string text = fmt::format("{}: {} files\n", out, made.files.size());
    for (const std::string& number : made.typed) text += fmt::format("typed by hand: {}\n", number);
    RETURN_IF_ERROR(write_stdout(text));
  } else {
    ASSIGN_OR_RETURN(const std::vector<std::string> wrong, paper::check_paper(context.fs, out, made));
    if (!wrong.empty()) return corrupt(fmt::format("{}", fmt::join(wrong, "\nerror: ")));
  }
  if (!made.missing.empty())
    return not_found(fmt::format("{}: {} {}: {}", out, fmt::join(made.not_made, ", "),
                                 options.check ? "were not compared" : "were not made", made.missing));
  if (!options.check) return {};
  return write_stdout(
      fmt::format("equal: the {} files of {} are what the lab gives\n", made.files.size(), out));
}

int lab_report(Args args) {
  std::string file;
  ReportOptions options;
  args.summary(
      "Answers the plan's queries from the record of its lab, and writes values.json, figures, report.html "
      "and\n"
      "record.sqlite; of a plan whose report is a .typ file also report.pdf, set by Typst. Every byte of "
      "the\n"
      "outputs is compared with the journal first.");
  args.positional("FILE", &file, "the plan");
  args.option("--out", &options.out, "DIR",
              "where to write, or what to check (default: NAME.lab/report beside the plan)");
  args.flag("--check", &options.check,
            "write nothing: make the report again, and name each file that is another one");
  args.flag("--latex", &options.latex,
            "write latex/macros.tex with a command for each value, and the figures as PDF, too");
  args.option("--value", &options.value, "NAME",
              "write nothing: print the answer to one query, its class, and what it reads");
  if (const auto code = args.parse()) return *code;
  return exit_after(report(args.context(), file, std::move(options)));
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
    {"without", "train a run again without a document, and compare", lab_without},
};

}  // namespace

int lab_command(Args args) { return run_verb(std::move(args), kLabVerbs); }

}  // namespace ostro::cli
