// explain_syntax: finds what is wrong with a text that is no YAML, for people. A pure function, private to
// the room.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro::config {

// `line` counts from 0, or is -1 where the parser names none; `message` is the parser's. The error names the
// file, the line and what to change there: tabs, an indentation that fits no section, a bracket or quote that
// is not closed, a colon without a space. Where none of these is found, it has the parser's message.
Error explain_syntax(const std::string& text, const std::string& file, int line, const std::string& message);

}  // namespace ostro::config
