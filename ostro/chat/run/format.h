// Making texts out of values: padding, %-formatting, str.format, JSON, dates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ostro/chat/run/interpreter.h"

namespace ostro::chat::jinja {

// `fill` (one character) around the text until it has `width` characters; on both sides as str.center does.
std::string pad(Interpreter& in, const std::string& text, int64_t width, bool left, bool right,
                std::string_view fill);

// str.replace whose result is charged before it is made.
std::string replace_bounded(Interpreter& in, std::string_view text, std::string_view from,
                            std::string_view to, int64_t count);

// "{} {0} {name}".format(...): without conversions and format specifications, which are an error.
Value brace_format(Interpreter& in, const std::string& format, const Arguments& arguments);

struct JsonStyle {
  bool ascii = false, sort_keys = false;
  std::string indent;  // of one level; meaningful when `lines`
  bool lines = false;  // every item on a line of its own
  std::string between = ", ", after_key = ": ";
};
// json.dumps(value, ...).
std::string to_json(const Value& value, const JsonStyle& style);

// datetime.strftime in UTC with English names; `seconds` since 1970. TemplateError for an unknown directive.
std::string format_time(std::string_view format, int64_t seconds);

}  // namespace ostro::chat::jinja
