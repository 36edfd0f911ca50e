#include "ostro/lab_commands/lab_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ostro/config/options.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/lab/record/record.h"
#include "ostro/lab/report/report.h"
#include "ostro/paper/answers.h"
#include "ostro/paper/paper.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {
namespace {

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
  if (out.empty()) out = plan.report_folder();
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
  RETURN_IF_ERROR(paper::check_whole(out, made, options.check ? "were not compared" : "were not made"));
  if (!options.check) return {};
  return write_stdout(
      fmt::format("equal: the {} files of {} are what the lab gives\n", made.files.size(), out));
}

}  // namespace

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
  args.option(
      "--out", &options.out, "DIR",
      "where to write, or what to check (default: what the plan says, else NAME.lab/report beside it)");
  args.flag("--check", &options.check,
            "write nothing: make the report again, and name each file that is another one");
  args.flag("--latex", &options.latex,
            "write latex/macros.tex with a command for each value, and the figures as PDF, too");
  args.option("--value", &options.value, "NAME",
              "write nothing: print the answer to one query, its class, and what it reads");
  if (const auto code = args.parse()) return *code;
  return exit_after(report(args.context(), file, std::move(options)));
}

}  // namespace ostro::cli
