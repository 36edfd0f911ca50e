// join_path, glob_match, ...: functions on paths. A path is text with "/" between components, for every
// FileSystem.
#pragma once

#include <string>
#include <string_view>

namespace ostro::io {

// The scheme of a path, e.g. "s3://" of "s3://bucket/key": letters, digits, "+", "-" and "." before "://".
// Empty if the path has none.
std::string_view path_scheme(std::string_view path);
// "a" and "b" give "a/b". The result is `right` alone if `left` is empty, or `right` is absolute or has a
// scheme.
std::string join_path(std::string_view left, std::string_view right);
// The part before the last "/": "." for a bare name, "/" for a file in the root, "s3://" for a bucket.
std::string parent_path(std::string_view path);
// The part after the last "/".
std::string base_name(std::string_view path);
// The path without empty and "." components. It keeps a scheme, and "..", which may cross a symbolic link.
std::string clean_path(std::string_view path);
// The absolute path without ".", ".." and empty components, so that different spellings of a place give the
// same text. Symbolic links are not followed. For paths with a scheme, or when there is no working directory:
// as clean_path.
std::string absolute_path(std::string_view path);

// Returns whether the path ends with `extension` (".jsonl.gz"), in upper or lower case of ASCII.
bool has_extension(std::string_view path, std::string_view extension);

// Returns whether the whole of `text` matches `pattern`. `?` matches one character and `*` any characters
// within a component; `[a-z]` and `[!a-z]` match one character in (or not in) a set; `**` matches any number
// of whole components, also none. Everything else is literal. Used for files and for the paths of tensors.
bool glob_match(std::string_view pattern, std::string_view text);
bool has_wildcard(std::string_view pattern);
// The pattern that matches this path alone.
std::string glob_literal(std::string_view path);

}  // namespace ostro::io
