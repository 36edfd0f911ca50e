// differences: what was changed within the files of a report, by name and value. Functions without state.
#pragma once

#include <string>
#include <vector>

#include "ostro/lab/report/report.h"

namespace ostro::paper {

// How a values.json differs from another one, a line each: "values.best.value: is 1.5, not 1.4".
std::vector<std::string> value_differences(const std::string& there, const std::string& wanted);

// How a record differs from another one: of each table the first row that is another one, with its columns.
Result<std::vector<std::string>> record_differences(const std::string& there, const std::string& wanted);

// check_report of lab/report, and for files that differ what in them does: values, rows, or which other
// figure it is.
Result<std::vector<std::string>> find_differences(io::FileSystem& fs, const std::string& folder,
                                                  const std::vector<lab::ReportFile>& files);

}  // namespace ostro::paper
