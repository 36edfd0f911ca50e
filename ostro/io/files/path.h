// Paths as text with "/" between components, the same for every FileSystem.
#pragma once

#include <string>
#include <string_view>

namespace ostro::io {

// "s3://" of "s3://bucket/key": letters, digits, "+", "-" and "." before "://"; empty for other paths.
std::string_view path_scheme(std::string_view path);
// "a/b"; an empty left part gives the right part, an absolute right part (or one with a scheme) wins.
std::string join_path(std::string_view left, std::string_view right);
// The part before the last "/": "." for a bare name, "/" for a file in the root, "s3://" for a bucket.
std::string parent_path(std::string_view path);
// The part after the last "/".
std::string base_name(std::string_view path);
// The same path without empty and "." components; ".." is kept (it may cross a symbolic link), and so is a
// scheme.
std::string clean_path(std::string_view path);
// One text for one place however it is written: from the root, without ".", ".." and empty components (links
// are not followed). Paths with a scheme, and all where there is no working directory, as clean_path says.
std::string absolute_path(std::string_view path);

// Whether `text` matches `pattern` as a whole: `?` is one character and `*` any run within a component,
// `[a-z]` and `[!a-z]` one character of (or out of) a set, `**` any run of whole components (also none).
// Everything else is literal. Used for files and for the paths of tensors.
bool glob_match(std::string_view pattern, std::string_view text);
bool has_wildcard(std::string_view pattern);

}  // namespace ostro::io
