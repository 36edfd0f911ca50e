// report_body: the text of a report with its placeholders filled in, as HTML. Private to the sub-room.
//
// The text has paragraphs between empty lines, and headings: lines that begin with "# ". {value NAME} stands
// for the value of a query, {value NAME D} for it with D digits behind the point, {verdict NAME} for that of
// a hypothesis, {table NAME} and {figure NAME}, each alone on its line, for these. "{{" is a brace.
#pragma once

#include "ostro/lab/report/values.h"

namespace ostro::lab {

struct ReportBody {
  std::string html;
  std::vector<std::string> typed_numbers;  // numbers that stand in the text itself, in order
};

// Errors name the file and the line: a placeholder of another form, or one that names nothing, with the
// nearest name.
Result<ReportBody> report_body(const std::string& text, const std::string& file, const Values& values);

// A value that leads to its query on the same page.
std::string value_html(const Quoted& value, const std::string& text);

}  // namespace ostro::lab
