// make_report: a report with all that its numbers are made of, as files: record.sqlite, values.json, an SVG
// for each figure, report.html, and report.lock with the hashes of all.
#pragma once

#include <string>
#include <vector>

#include "ostro/lab/drive/driver.h"
#include "ostro/lab/report/values.h"

namespace ostro::lab {

// A file, with its path below the folder of the report.
struct ReportFile {
  std::string name, bytes;
};

// What every form of a report is made of. The figures of a paper do not show their names, since the paper has
// captions.
struct ReportData {
  Database tables;                // the record, with sessions
  Values values;                  // the answers to the plan's queries
  std::vector<ReportFile> files;  // record.sqlite, values.json, an SVG for each figure
};

// Asks the queries of a lab whose steps are done. record.sqlite has the sessions only if a query reads
// measured columns. Errors: those of queries.
Result<ReportData> report_data(io::FileSystem& fs, const Plan& plan, const LabState& state);

// Whether the plan's report is a paper (a Typst document), which this room does not set.
bool is_paper(const Plan& plan);

// report.lock: the hashes of the lab, the plan, and all files of the report; with Typst's version, if it set
// one.
ReportFile report_lock(const Plan& plan, const LabState& state, const std::vector<ReportFile>& files,
                       const std::string& typst = "");

// The files of the report of a lab whose steps are done; in the place of a paper's text it has all figures
// and tables. The same lab gives the same bytes, in any folder and at any time; only a query that reads
// measured columns makes them depend on one lab's sessions. Errors: those of queries and of the report's
// text, with file and line.
Result<std::vector<ReportFile>> make_report(io::FileSystem& fs, const Plan& plan, const LabState& state);
// The same with data that is there already.
Result<std::vector<ReportFile>> make_report(io::FileSystem& fs, const Plan& plan, const LabState& state,
                                            const ReportData& data);

// Writes the files below a folder, in their order.
Status write_files(io::FileSystem& fs, const std::string& folder, const std::vector<ReportFile>& files);

// What is wrong with the files in a folder, a line each: one that is missing, another one, or no part of the
// report. Empty if they are those of the report.
Result<std::vector<std::string>> check_report(io::FileSystem& fs, const std::string& folder,
                                              const std::vector<ReportFile>& files);

}  // namespace ostro::lab
