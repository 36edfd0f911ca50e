#include "ostro/io/json/json_slices.h"

#include <set>
#include <string>

namespace ostro::io {
namespace {

// The position after the string that begins at `at`; npos if the string does not end.
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

// The position after the value that begins at `at`; npos if it does not end, or contains white space or an
// unmatched bracket.
size_t value_end(std::string_view text, size_t at) {
  std::string open;  // closing brackets that are expected, the next one last
  while (at < text.size()) {
    const char c = text[at];
    switch (c) {
      case '"':
        at = string_end(text, at);
        if (open.empty() || at == std::string_view::npos) return at;
        continue;
      case '{': open += '}'; break;
      case '[': open += ']'; break;
      case '}':
      case ']':
        if (open.empty()) return at;  // end of the object or list that contains the value
        if (open.back() != c) return std::string_view::npos;
        open.pop_back();
        if (open.empty()) return at + 1;
        break;
      case ',':
        if (open.empty()) return at;
        break;
      case ' ':
      case '\t':
      case '\n':
      case '\r': return std::string_view::npos;
      default: break;
    }
    ++at;
  }
  return std::string_view::npos;
}

bool keys_differ(const std::vector<JsonSlice>& members) {
  std::set<std::string_view> keys;
  for (const JsonSlice& member : members) keys.insert(member.key);
  return keys.size() == members.size();
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
    if (end >= text.size() || end == colon + 1) return std::nullopt;
    const std::string_view key = text.substr(at + 1, colon - at - 2);
    if (key.find('\\') != std::string_view::npos) return std::nullopt;
    members.push_back({key, text.substr(colon + 1, end - colon - 1)});
    if (end == text.size() - 1) break;
    if (text[end] != ',') return std::nullopt;
    at = end + 1;
  }
  if (!keys_differ(members)) return std::nullopt;
  return members;
}

std::string_view json_slice(const std::vector<JsonSlice>& members, std::string_view key) {
  for (const JsonSlice& member : members)
    if (member.key == key) return member.value;
  return {};
}

}  // namespace ostro::io
