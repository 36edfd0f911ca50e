// Paths as text with "/" between components, the same for every FileSystem.
#pragma once

#include <string>
#include <string_view>

namespace ostro::io {

// "a/b"; an empty left part gives the right part, an absolute right part wins.
std::string join_path(std::string_view left, std::string_view right);
// The part before the last "/": "." for a bare name, "/" for a file in the root.
std::string parent_path(std::string_view path);
// The part after the last "/".
std::string base_name(std::string_view path);
// The same path without empty and "." components; ".." is kept (it may cross a symbolic link).
std::string clean_path(std::string_view path);

// Whether `text` matches `pattern` as a whole: `?` is one character and `*` any run within a component,
// `[a-z]` and `[!a-z]` one character of (or out of) a set, `**` any run of whole components (also none).
// Everything else is literal. Used for files and for the paths of tensors.
bool glob_match(std::string_view pattern, std::string_view text);
bool has_wildcard(std::string_view pattern);

}  // namespace ostro::io
