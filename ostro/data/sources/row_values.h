// Reading the fields of a row that is a JSON object.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/chat/value/mapping.h"
#include "ostro/chat/value/value.h"
#include "ostro/data/sources/row_reader.h"

namespace ostro::data {

// The object that a row is, in valid UTF-8 (`repaired` says whether it had to be made so). Errors: not JSON,
// not an object; a row that is a text, which `format_name` cannot read.
Result<chat::jinja::Value> row_object(const Row& row, std::string_view format_name, bool& repaired);

// A field of it; the error of a missing one names the option that chooses it.
Result<chat::jinja::Value> row_field(const chat::jinja::Value& object, const std::string& name,
                                     std::string_view option);
// A field that must be a string.
Result<std::string> row_text(const chat::jinja::Value& object, const std::string& name,
                             std::string_view option);

// Bytes as UTF-8, U+FFFD for what is not.
std::string as_utf8(std::string bytes, bool& repaired);

}  // namespace ostro::data
