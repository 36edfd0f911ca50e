#include "ostro/lab_commands/lab_check.h"

#include <fmt/format.h>

#include "ostro/base/object_cache.h"
#include "ostro/base/one_line.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/drive/check_lab.h"
#include "ostro/lab/drive/driver.h"
#include "ostro/paper/paper.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"
#include "ostro/site/site.h"

namespace ostro::cli {
namespace {

struct CheckRequest {
  std::string file, site;
  site::SiteRequest pages;
  bool full = false;
};

std::string first_open(const lab::LabState& state) {
  for (const lab::StepState& s : state.steps)
    if (!s.is_settled()) return fmt::format("{}: {}", s.step->name, s.reason);
  return "";
}

// The report where the plan has it, if there is one: made again and compared. `pages` gets it.
Status check_report(const Context& context, const lab::Plan& plan, const lab::LabState& state,
                    site::SiteRequest& pages, lab::LabCheck& out) {
  const std::string folder = plan.report_folder();
  ASSIGN_OR_RETURN(const bool exists, context.fs.exists(folder));
  if (!exists) return {};
  if (!state.is_done()) {
    out.open.push_back(
        fmt::format("{}: is compared when all steps are done ({})", folder, first_open(state)));
    return {};
  }
  ASSIGN_OR_RETURN(const bool latex, paper::has_latex(context.fs, folder));
  ASSIGN_OR_RETURN(paper::Paper made, paper::make_paper(context.fs, plan, state, latex));
  ASSIGN_OR_RETURN(const std::vector<std::string> wrong, paper::check_paper(context.fs, folder, made));
  out.faults.insert(out.faults.end(), wrong.begin(), wrong.end());
  if (wrong.empty()) out.holds.push_back(fmt::format("report: {} files, made again", made.files.size()));
  if (!made.missing.empty()) out.open.push_back(fmt::format("{}: {}", folder, made.missing));
  if (!latex) pages.report = std::move(made);
  return {};
}

// The pages in a folder, made again in another one and compared. Other files there are no part of them.
Status check_site(const Context& context, const lab::Plan& plan, const lab::LabState& state,
                  const std::string& folder, const site::SiteRequest& pages, lab::LabCheck& out) {
  if (folder.empty()) return {};
  ASSIGN_OR_RETURN(const PrivateFolder scratch, PrivateFolder::make(temporary_dir(), "ostro-check-"));
  const std::string again = scratch.path().string();
  ASSIGN_OR_RETURN(const site::Site made, site::write_site(context, plan, state, pages, again));
  ASSIGN_OR_RETURN(const std::vector<std::string> files, lab::files_below(context.fs, again));
  size_t equal = 0;
  for (const std::string& name : files) {
    const std::string there = io::join_path(folder, name);
    const auto bytes = context.fs.read_file(there);
    ASSIGN_OR_RETURN(const std::string wanted, context.fs.read_file(io::join_path(again, name)));
    if (!bytes.ok() && bytes.error().code() != ErrorCode::kNotFound) return bytes.error();
    if (bytes.ok() && *bytes == wanted)
      ++equal;
    else
      out.faults.push_back(fmt::format(
          "{}: {}", there,
          bytes.ok() ? "is another file than the lab gives (made with the same --measured and --board?)"
                     : "is missing; the lab gives it"));
  }
  if (equal == files.size()) out.holds.push_back(fmt::format("site: {} files, made again", equal));
  if (!made.missing.empty()) out.open.push_back(fmt::format("{}: {}", folder, made.missing));
  return {};
}

Result<int> check(const Context& context, const CheckRequest& request) {
  ASSIGN_OR_RETURN(const lab::Plan plan, lab::read_plan(context.fs, request.file));
  ASSIGN_OR_RETURN(lab::LabCheck found, lab::check_lab(context, plan, request.full));
  // Report and pages are made of journal, registry and outputs; where these do not hold they show nothing.
  if (found.faults.empty()) {
    ASSIGN_OR_RETURN(const lab::LabState state, lab::look_at(context, plan));
    // Outputs whose damage only their reader notices are faults, too.
    site::SiteRequest pages = request.pages;
    for (const Status& made :
         {check_report(context, plan, state, pages, found),
          found.faults.empty() ? check_site(context, plan, state, request.site, pages, found) : Status()})
      if (!made.ok() && made.error().code() == ErrorCode::kCorrupt)
        found.faults.push_back(made.error().message());
      else if (!made.ok())
        return made.error();
  } else {
    found.open.push_back("report and site: what they are made of does not hold");
  }
  std::string out;
  for (const std::string& line : found.holds) out += fmt::format("holds: {}\n", one_line(line));
  for (const std::string& line : found.open) out += fmt::format("not compared: {}\n", one_line(line));
  RETURN_IF_ERROR(write_stdout(out));
  for (const std::string& fault : found.faults) (void)report_error(corrupt(fault));
  return found.faults.empty() ? kExitOk : kExitFailed;
}

}  // namespace

int lab_check(Args args) {
  CheckRequest request;
  args.summary(
      "Checks all of a lab that can be checked without doing a step: journal, kept plans, registry, pins of "
      "sources,\noutputs against their lists, and the report, which is made again. Names what is wrong; the "
      "exit "
      "status is then 1.");
  args.positional("FILE", &request.file, "the plan");
  args.flag("--full", &request.full,
            "read every byte of sources and outputs, not only files whose size or time has changed");
  args.option("--site", &request.site, "DIR", "also the pages in this folder (ostro lab site), made again");
  args.flag("--measured", &request.pages.measured, "with --site: they were made with --measured");
  args.option("--board", &request.pages.boards, "DIR", "with --site: the boards that they were made with");
  if (const auto code = args.parse()) return *code;
  if (request.site.empty() && (request.pages.measured || !request.pages.boards.empty()))
    return report_error(invalid_argument("--measured and --board say how pages were made; add --site DIR"));
  const auto code = check(args.context(), request);
  return code.ok() ? *code : report_error(code.error());
}

}  // namespace ostro::cli
