// row_object, row_field, row_text: read fields of rows that are JSON objects.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/chat/value/value.h"
#include "ostro/data/sources/row_reader.h"

namespace ostro::data {

// The row as a JSON object in valid UTF-8; `repaired` tells whether bytes had to be replaced. Errors: not
// JSON; not an object; a row of plain text, which the format `format_name` cannot read. `used`: the fields
// that are read (chat/value/from_json.h).
Result<chat::jinja::Value> row_object(const Row& row, std::string_view format_name,
                                      std::initializer_list<std::string_view> used, bool& repaired);

// A field of the object. When it is missing, the error names `option`, which sets the field's name.
Result<chat::jinja::Value> row_field(const chat::jinja::Value& object, const std::string& name,
                                     std::string_view option);
// A field that must be a string.
Result<std::string> row_text(const chat::jinja::Value& object, const std::string& name,
                             std::string_view option);

// Valid UTF-8: bytes that are not become U+FFFD, and `repaired` is set then.
std::string as_utf8(std::string bytes, bool& repaired);

}  // namespace ostro::data
