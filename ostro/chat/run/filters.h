// The tables of filters, in parts.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ostro/chat/run/interpreter.h"

namespace ostro::chat::jinja {

// first, last, join, map, select, sort ... (sequence_filters.cc).
const std::map<std::string, FilterFunction, std::less<>>& sequence_filters();

}  // namespace ostro::chat::jinja
