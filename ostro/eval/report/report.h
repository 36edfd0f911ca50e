// report_json, report_table: an evaluation as JSON (docs/reference/formats/eval_report.md) and as a table for
// a person.
#pragma once

#include <string>
#include <vector>

#include "ostro/eval/report/results.h"

namespace ostro::eval {

inline constexpr int kReportVersion = 1;

struct Report {
  std::string task_file, task_file_hash;  // its name, and the SHA-256 of its text
  std::vector<Evaluated> checkpoints;     // at least one
};

// The evaluation as JSON. With several checkpoints it also has the paired differences of each to the first.
std::string report_json(const Report& report);

// The evaluation as a table. One checkpoint: its figures with standard errors. Two: also the differences with
// 95 % intervals. More: a column for each.
std::string report_table(const Report& report);

}  // namespace ostro::eval
