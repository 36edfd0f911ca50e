#include "ostro/config/yaml_syntax.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace ostro::config {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// Columns before the first character that is no space; nothing for a line without content.
std::optional<size_t> indent_of(const std::string& line) {
  const size_t at = line.find_first_not_of(" \t\r");
  if (at == std::string::npos || line[at] == '#') return std::nullopt;
  return at;
}

Error at(const std::string& file, size_t line, const std::string& what) {
  return invalid_argument(fmt::format("{}:{}: {}", file, line + 1, what));
}

std::optional<size_t> line_with_tab(const std::vector<std::string>& lines, size_t last) {
  for (size_t i = 0; i < lines.size() && i <= last; ++i) {
    const size_t text = lines[i].find_first_not_of(" \t\r");
    if (text != std::string::npos && lines[i].substr(0, text).find('\t') != std::string::npos) return i;
  }
  return std::nullopt;
}

// The sections that are open at a line, by their columns: a line that goes back must stand in one of them. A
// line goes further in only below a line that ends with a colon or is an entry of a list.
std::optional<std::string> wrong_indent(const std::vector<std::string>& lines, size_t last, size_t* found) {
  std::vector<size_t> open;
  std::optional<size_t> before;
  for (size_t i = 0; i < lines.size() && i <= last; ++i) {
    const auto indent = indent_of(lines[i]);
    if (!indent) continue;
    while (!open.empty() && open.back() > *indent) open.pop_back();
    const bool fits = open.empty() ? !before : open.back() == *indent;
    if (before && !fits) {
      const std::string& above = lines[*before];
      const size_t end = above.find_last_not_of(" \t\r"), above_indent = *indent_of(above);
      const bool opens = *indent > above_indent && (above[end] == ':' || above[above_indent] == '-');
      *found = i;
      if (!opens)
        return fmt::format(
            "this line is indented by {} spaces, and line {} before it by {}; lines of one section begin in "
            "the same column",
            *indent, *before + 1, above_indent);
    }
    if (open.empty() || open.back() < *indent) open.push_back(*indent);
    before = i;
  }
  return std::nullopt;
}

// The line of the first bracket, brace or quote that is not closed, outside comments.
std::optional<std::pair<size_t, char>> unclosed(const std::vector<std::string>& lines) {
  std::vector<std::pair<size_t, char>> open;
  char quote = 0;
  size_t quoted_at = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    for (size_t k = 0; k < lines[i].size(); ++k) {
      const char c = lines[i][k];
      const bool starts = k == 0 || std::string_view(" [{,:").find(lines[i][k - 1]) != std::string_view::npos;
      if (quote != 0) {
        if (c == '\\' && quote == '"')
          ++k;
        else if (c == quote)
          quote = 0;
      } else if ((c == '"' || c == '\'') && starts) {
        quote = c, quoted_at = i;
      } else if (c == '#' && (k == 0 || lines[i][k - 1] == ' ')) {
        break;
      } else if (c == '[' || c == '{') {
        open.emplace_back(i, c);
      } else if ((c == ']' || c == '}') && !open.empty()) {
        open.pop_back();
      }
    }
  }
  if (quote != 0) return std::pair{quoted_at, quote};
  if (!open.empty()) return open.back();
  return std::nullopt;
}

}  // namespace

Error explain_syntax(const std::string& text, const std::string& file, int line, const std::string& message) {
  const std::vector<std::string> lines = lines_of(text);
  const size_t last = line < 0 ? lines.size() - 1 : std::min(static_cast<size_t>(line), lines.size() - 1);
  if (const auto tab = line_with_tab(lines, last))
    return at(file, *tab, "this line is indented with a tab; YAML takes spaces, two for each level");
  if (const auto open = unclosed(lines))
    return at(file, open->first, fmt::format("a {} is opened in this line and not closed", open->second));
  size_t where = last;
  if (const auto wrong = wrong_indent(lines, last, &where)) return at(file, where, *wrong);
  const std::string& here = lines[last];
  const size_t colon = here.find(':');
  if (colon != std::string::npos && colon + 1 < here.size() && here[colon + 1] != ' ' &&
      here[colon + 1] != '/')
    return at(file, last, "a colon needs a space behind it: \"key: value\"");
  if (indent_of(here) && colon == std::string::npos && here[*indent_of(here)] != '-')
    return at(
        file, last,
        fmt::format("expected \"key: value\", got \"{}\" ({})", here.substr(*indent_of(here)), message));
  return at(file, last, fmt::format("this is no YAML: {}", message));
}

}  // namespace ostro::config
