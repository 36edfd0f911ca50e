// stays_below: whether a path from outside may be joined to a folder of ours. Pure.
#pragma once

#include <string_view>

namespace ostro::io {

// Whether a path leads to a place below the folder that it starts from: it is relative, names something, and
// has no empty, "." or ".." component.
bool stays_below(std::string_view path);

}  // namespace ostro::io
