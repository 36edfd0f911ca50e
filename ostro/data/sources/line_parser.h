// LineParser, text_of_row: get the text of a row, which is a field of a JSON line.
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
  // The string in the field `text_key` of a line that is a JSON object. Errors: not JSON, not an object, no
  // such field (the message names `option`, which sets it), not a string. A line with kLinePadding bytes of
  // unused capacity is not copied.
  Result<std::string> text(std::string line, std::string_view text_key, std::string_view option);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The text of a row: the row itself or its field (LineParser::text). Bytes that are not valid UTF-8 become
// U+FFFD, and `repaired` tells so. Errors: those of LineParser::text; a row with a `problem`.
Result<std::string> text_of_row(Row row, LineParser& parser, std::string_view text_key,
                                std::string_view option, bool& repaired);

}  // namespace ostro::data
