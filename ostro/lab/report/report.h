// make_report: a report with all that its numbers are made of, as files: record.sqlite, values.json, an SVG
// for each figure, report.html, and report.lock with the hashes of all.
#pragma once

#include <string>
#include <vector>

#include "ostro/lab/drive/driver.h"

namespace ostro::lab {

// A file, with its path below the folder of the report.
struct ReportFile {
  std::string name, bytes;
};

// The files of the report of a lab whose steps are done. The same lab gives the same bytes, in any folder and
// at any time; only a query that reads measured columns makes them depend on one lab's sessions. Errors:
// those of queries and of the report's text, with file and line.
Result<std::vector<ReportFile>> make_report(io::FileSystem& fs, const Plan& plan, const LabState& state);

// Writes the files below a folder, in their order.
Status write_files(io::FileSystem& fs, const std::string& folder, const std::vector<ReportFile>& files);

// What is wrong with the files in a folder, a line each: one that is missing, another one, or no part of the
// report. Empty if they are those of the report.
Result<std::vector<std::string>> check_report(io::FileSystem& fs, const std::string& folder,
                                              const std::vector<ReportFile>& files);

}  // namespace ostro::lab
