// to_json, format_time and others: format values as text: padding, %-formatting, str.format, JSON, dates.
// Errors are thrown as TemplateError. Functions with an Interpreter keep its memory limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ostro/chat/run/interpreter.h"

namespace ostro::chat::jinja {

// Pads the text with `fill` (one character) to `width` characters. On both sides it works as str.center.
std::string pad(Interpreter& in, const std::string& text, int64_t width, bool left, bool right,
                std::string_view fill);

// str.replace. The result is charged to the memory limit before it is made.
std::string replace_bounded(Interpreter& in, std::string_view text, std::string_view from,
                            std::string_view to, int64_t count);

// "{} {0} {name}".format(...). Conversions and format specifications are errors.
Value brace_format(Interpreter& in, const std::string& format, const Arguments& arguments);

// The arguments of json.dumps that filters pass.
struct JsonStyle {
  bool ascii = false, sort_keys = false;
  std::string indent;  // indentation of one level, used with `lines`
  bool lines = false;  // puts every item on a line of its own
  std::string between = ", ", after_key = ": ";
};
// json.dumps(value, ...).
std::string to_json(const Value& value, const JsonStyle& style);

// datetime.strftime in UTC with English names; `seconds` since 1970. TemplateError for an unknown directive.
std::string format_time(std::string_view format, int64_t seconds);

}  // namespace ostro::chat::jinja
