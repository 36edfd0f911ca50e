#include "ostro/io/json_slices.h"

namespace ostro::io {
namespace {

// Behind the string that begins at `at`; npos when it does not end.
size_t string_end(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    at = text.find('"', at);
    if (at == std::string_view::npos) return at;
    size_t escapes = 0;
    while (text[at - 1 - escapes] == '\\') ++escapes;
    if (escapes % 2 == 0) return at + 1;
  }
  return std::string_view::npos;
}

// Behind the value that begins at `at`; npos when it does not end.
size_t value_end(std::string_view text, size_t at) {
  for (int64_t depth = 0; at < text.size();) {
    switch (text[at]) {
      case '"':
        at = string_end(text, at);
        if (depth == 0 || at == std::string_view::npos) return at;
        continue;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (depth == 0) return at;  // of what the value stands in
        if (--depth == 0) return at + 1;
        break;
      case ',':
        if (depth == 0) return at;
        break;
      default:
        break;
    }
    ++at;
  }
  return std::string_view::npos;
}

}  // namespace

std::optional<std::vector<JsonSlice>> json_slices(std::string_view text) {
  std::vector<JsonSlice> members;
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return std::nullopt;
  if (text.size() == 2) return members;
  for (size_t at = 1;;) {
    if (text[at] != '"') return std::nullopt;
    const size_t colon = string_end(text, at);
    if (colon >= text.size() || text[colon] != ':') return std::nullopt;
    const size_t end = value_end(text, colon + 1);
    if (end >= text.size()) return std::nullopt;
    members.push_back({text.substr(at + 1, colon - at - 2), text.substr(colon + 1, end - colon - 1)});
    if (end == text.size() - 1) return members;
    if (text[end] != ',') return std::nullopt;
    at = end + 1;
  }
}

std::string_view json_slice(const std::vector<JsonSlice>& members, std::string_view key) {
  for (const JsonSlice& member : members)
    if (member.key == key) return member.value;
  return {};
}

}  // namespace ostro::io
