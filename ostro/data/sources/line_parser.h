// Takes the text out of a row: the field of a JSON line.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/data/sources/row_reader.h"

namespace ostro::data {

// Takes texts out of JSON lines. One per thread.
class LineParser {
 public:
  LineParser();
  ~LineParser();
  // The string in the field `text_key` of the object that a line is. Errors: not
  // JSON, not an object, no such field (`option` sets it), not a string. A line with kLinePadding bytes of
  // unused capacity is not copied.
  Result<std::string> text(std::string line, std::string_view text_key, std::string_view option);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The text that a row is, or has in a field (LineParser::text), as UTF-8 with U+FFFD for what is not, which
// `repaired` tells. Errors: those of the line; a row that cannot be had.
Result<std::string> text_of_row(Row row, LineParser& parser, std::string_view text_key,
                                std::string_view option, bool& repaired);

}  // namespace ostro::data
