// make_paper: a lab's report with the paper that its plan names, set by Typst, and files for LaTeX.
#pragma once

#include <string>
#include <vector>

#include "ostro/lab/report/report.h"

namespace ostro::paper {

struct Paper {
  std::vector<lab::ReportFile> files;
  std::vector<std::string> typed;     // numbers typed by hand, "FILE:LINE: 30"
  std::string missing;                // why Typst set nothing, and how it is installed; else empty
  std::vector<std::string> not_made;  // files that only Typst could have made
};

// All files of the report of a lab whose steps are done: of a plan whose report is a .typ file record.sqlite,
// values.json, an SVG for each figure, the author's files, ostro.typ, report.typ, report.pdf, report.html and
// report.lock; of another plan those of make_report. With `latex` also latex/macros.tex and latex/NAME.pdf.
// The same lab and sources give the same bytes. Without Typst the files that it would make are missing, and
// the lock. Errors: those of queries, and Typst's, with file and line.
Result<Paper> make_paper(io::FileSystem& fs, const lab::Plan& plan, const lab::LabState& state, bool latex);

struct Report {
  std::vector<lab::ReportFile> files;
  std::string missing;  // why the paper is not there in its PDF; empty: it is, or the plan has none
};

// The report of a lab whose steps are done, as pages show it: a paper as Typst set it, without Typst its
// figures and tables; of another plan that of make_report. Errors: as make_paper.
Result<Report> shown_report(io::FileSystem& fs, const lab::Plan& plan, const lab::LabState& state);
// The same of what make_paper() has made without `latex`.
Result<Report> shown_report(io::FileSystem& fs, const lab::Plan& plan, const lab::LabState& state,
                            Paper made);

// The error of a paper of which Typst could not set all: the files, what became of them ("were not made"),
// why.
Status check_whole(const std::string& folder, const Paper& made, const char* became);

// What is wrong with the files in a folder, a line each; empty if they are those of the report. Files that
// could not be made are not compared.
Result<std::vector<std::string>> check_paper(io::FileSystem& fs, const std::string& folder,
                                             const Paper& paper);

// Whether the report in a folder has the files for LaTeX.
Result<bool> has_latex(io::FileSystem& fs, const std::string& folder);

}  // namespace ostro::paper
