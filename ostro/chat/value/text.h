// Python's str: UTF-8 here, but lengths, positions and case are those of code points. All texts are valid
// UTF-8.
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
// The byte at which code point number n begins (the size of the text when it has no more than n).
size_t byte_offset(std::string_view text, size_t n);

// strip, lstrip, rstrip: white space, or code points that are in `of`.
enum class Side { kLeft, kRight, kBoth };
std::string_view strip(std::string_view text, Side side);
std::string_view strip(std::string_view text, Side side, std::string_view of);

// Full case mapping, final sigma included.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
// str.title: a letter that follows a cased one becomes small, others capital.
std::string title(std::string_view text);

// str.isupper and str.islower: no letter of another case, and one of this.
bool has_case(std::string_view text, bool upper_case);

std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t count = -1);

// str.split() at white space, at most `limit` times (-1: no limit).
std::vector<std::string> split_space(std::string_view text, int64_t limit, bool from_right);
std::vector<std::string> split(std::string_view text, std::string_view by, int64_t limit, bool from_right);
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);

}  // namespace ostro::chat::jinja
