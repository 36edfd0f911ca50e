#include "ostro/paper/paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/io/files/path.h"
#include "ostro/paper/answers.h"
#include "ostro/paper/differences.h"
#include "ostro/paper/latex.h"
#include "ostro/paper/prelude.h"
#include "ostro/paper/sources.h"
#include "ostro/paper/typed_digits.h"
#include "ostro/paper/typst.h"

namespace ostro::paper {
namespace {

constexpr const char* kMacros = "latex/macros.tex";

// What is set in one go, and where the outputs go.
struct Setting {
  std::vector<lab::ReportFile> only_for_typst;
  std::vector<TypstJob> jobs;
  std::vector<std::string> names;
};

void add_latex_figures(const lab::Values& values, Setting& setting) {
  for (const lab::QuotedRows& figure : values.figures) {
    const std::string main = fmt::format("ostro-figure-{}.typ", figure.query.name);
    setting.only_for_typst.push_back({main, figure_document(figure.query.name + ".svg")});
    setting.jobs.push_back({main, "pdf"});
    setting.names.push_back(fmt::format("latex/{}.pdf", figure.query.name));
  }
}

// The author's files and those that join them with the values.
Result<std::vector<std::string>> add_paper(io::FileSystem& fs, const lab::Plan& plan,
                                           const lab::LabState& state, const lab::ReportData& data,
                                           const std::string& folder, std::set<std::string>& generated,
                                           std::vector<lab::ReportFile>& files) {
  const std::string main = io::base_name(plan.report);
  ASSIGN_OR_RETURN(std::vector<lab::ReportFile> sources, gather_sources(fs, folder, main, generated));
  std::vector<std::string> typed;
  for (const lab::ReportFile& source : sources)
    if (io::has_extension(source.name, ".typ"))
      for (const TypedNumber& number : typed_digits(source.bytes))
        typed.push_back(fmt::format("{}:{}: {}{}", source.name, number.line, number.text,
                                    number.in_code ? " (in code)" : ""));
  for (const std::string& number : lab::typed_in_queries(data.values))
    typed.push_back(fmt::format("{}: {}", io::base_name(plan.file), number));
  for (lab::ReportFile& file : files)
    if (file.name == "values.json") {
      ASSIGN_OR_RETURN(file.bytes, answers_json(data, plan, state, typed));
    }
  for (lab::ReportFile& source : sources) files.push_back(std::move(source));
  files.push_back({"ostro.typ", kPrelude});
  files.push_back({"report.typ", main_document(main)});
  return typed;
}

}  // namespace

Result<Paper> make_paper(io::FileSystem& fs, const lab::Plan& plan, const lab::LabState& state, bool latex) {
  const bool has_paper = lab::is_paper(plan);
  Paper out;
  ASSIGN_OR_RETURN(lab::ReportData data, lab::report_data(fs, plan, state));
  if (!has_paper) {
    ASSIGN_OR_RETURN(out.files, lab::make_report(fs, plan, state, data));
    if (!latex) return out;
    out.files.pop_back();  // the lock, which is made anew for all files
  }
  const std::string folder = io::parent_path(io::join_path(plan.folder, plan.report));
  std::set<std::string> generated = {"ostro.typ",   "report.typ",  "report.pdf",
                                     "report.html", "report.lock", kMacros};
  for (const lab::ReportFile& file : data.files) generated.insert(file.name);
  Setting setting;
  if (has_paper) {
    out.files = std::move(data.files);
    ASSIGN_OR_RETURN(out.typed, add_paper(fs, plan, state, data, folder, generated, out.files));
    setting.jobs = {{"report.typ", "pdf"}, {"report.typ", "html"}};
    setting.names = {"report.pdf", "report.html"};
  }
  if (latex) {
    add_latex_figures(data.values, setting);
    ASSIGN_OR_RETURN(std::string macros, latex_macros(data.values));
    out.files.push_back({kMacros, std::move(macros)});
  }
  std::vector<lab::ReportFile> stage = out.files;
  for (const lab::ReportFile& file : setting.only_for_typst) {
    generated.insert(file.name);
    stage.push_back(file);
  }
  std::string version;
  if (!setting.jobs.empty()) {
    ASSIGN_OR_RETURN(TypstResult set, run_typst(fs, stage, setting.jobs, folder, generated));
    out.missing = set.missing;
    for (size_t i = 0; i < setting.names.size(); ++i) {
      const std::string& name = setting.names[i];
      if (!set.missing.empty()) {
        out.not_made.push_back(name);
        continue;
      }
      std::string& bytes = set.outputs[i];
      out.files.push_back({name, name == "report.html" ? styled_html(std::move(bytes)) : std::move(bytes)});
    }
    version = kTypst;
  }
  if (out.missing.empty())
    out.files.push_back(lab::report_lock(plan, state, out.files, version));
  else
    out.not_made.emplace_back("report.lock");
  return out;
}

Result<Report> shown_report(io::FileSystem& fs, const lab::Plan& plan, const lab::LabState& state) {
  ASSIGN_OR_RETURN(Paper made, make_paper(fs, plan, state, /*latex=*/false));
  return shown_report(fs, plan, state, std::move(made));
}

Result<Report> shown_report(io::FileSystem& fs, const lab::Plan& plan, const lab::LabState& state,
                            Paper made) {
  Report out{{}, made.missing};
  if (made.missing.empty()) {
    out.files = std::move(made.files);
  } else {
    ASSIGN_OR_RETURN(out.files, lab::make_report(fs, plan, state));
  }
  return out;
}

Status check_whole(const std::string& folder, const Paper& made, const char* became) {
  if (made.missing.empty()) return {};
  return not_found(
      fmt::format("{}: {} {}: {}", folder, fmt::join(made.not_made, ", "), became, made.missing));
}

Result<std::vector<std::string>> check_paper(io::FileSystem& fs, const std::string& folder,
                                             const Paper& paper) {
  std::vector<lab::ReportFile> files = paper.files;
  for (const std::string& name : paper.not_made)
    if (auto there = fs.read_file(io::join_path(folder, name)); there.ok())
      files.push_back({name, std::move(*there)});
  return find_differences(fs, folder, files);
}

Result<bool> has_latex(io::FileSystem& fs, const std::string& folder) {
  return fs.exists(io::join_path(folder, kMacros));
}

}  // namespace ostro::paper
