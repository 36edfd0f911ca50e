// Performed: what doing a step gave, and the same as a text that another process reads. Pure functions, and
// print_to().
#pragma once

#include <optional>
#include <string>

#include "ostro/base/error.h"

namespace ostro::lab {

// What perform() gave: the content; nothing when it was stopped; why it failed.
using Performed = Result<std::optional<std::string>>;

// JSON, and back. Nothing: the text is none that performed_text() wrote.
std::string performed_text(const Performed& performed);
std::optional<Performed> parse_performed(const std::string& text);

// From now on what this process prints goes to the file: behind what is there, or in its place. Error: it
// cannot be opened.
enum class LogBegin { kNew, kBehind };
Status print_to(const std::string& log, LogBegin begin);

}  // namespace ostro::lab
