// strip, upper, split and others: functions of Python's str. Texts are valid UTF-8, but lengths, positions
// and case are those of code points. Pure functions; there are no errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ostro::chat::jinja {

bool is_space(uint32_t code_point);      // str.isspace
bool is_printable(uint32_t code_point);  // str.isprintable

// Number of code points.
size_t length(std::string_view text);
// Every code point as a text of its own.
std::vector<std::string> characters(std::string_view text);
// The byte where code point number n begins. The size of the text when it has at most n code points.
size_t byte_offset(std::string_view text, size_t n);

// str.strip, lstrip, rstrip: remove white space, or the code points in `of`.
enum class Side { kLeft, kRight, kBoth };
std::string_view strip(std::string_view text, Side side);
std::string_view strip(std::string_view text, Side side, std::string_view of);

// Full Unicode case mapping, including the final sigma.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
// str.title: a letter after a cased letter becomes lower case, every other letter title case.
std::string title(std::string_view text);

// str.isupper and str.islower: there is a letter of this case, and none of another.
bool has_case(std::string_view text, bool upper_case);

// str.replace: at most `count` times from the left (-1: all).
std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t count = -1);

// str.split() at white space, at most `limit` times (-1: no limit).
std::vector<std::string> split_space(std::string_view text, int64_t limit, bool from_right);
// str.split and rsplit at `by` (not empty), and str.splitlines.
std::vector<std::string> split(std::string_view text, std::string_view by, int64_t limit, bool from_right);
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);

}  // namespace ostro::chat::jinja
