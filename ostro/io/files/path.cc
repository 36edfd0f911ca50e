#include "ostro/io/files/path.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace ostro::io {
namespace {

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = path.find('/', begin);
    parts.push_back(path.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

// For a set "[...]" at the start of the pattern: whether c is in it, and its length. Nothing without a
// closing bracket.
std::optional<std::pair<bool, size_t>> match_set(std::string_view pattern, char c) {
  size_t i = 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool found = false;
  for (const size_t first = i; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    const auto low = static_cast<unsigned char>(pattern[i]);
    auto high = low;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      high = static_cast<unsigned char>(pattern[i + 2]);
      i += 2;
    }
    const auto value = static_cast<unsigned char>(c);
    if (low <= value && value <= high) found = true;
  }
  if (i >= pattern.size()) return std::nullopt;
  return std::pair(found != negated, i + 1);
}

// Matches all of a text against a pattern with stars, both given by their sizes. is_star(p): pattern element
// p matches any run of text elements. length(p, t): how many pattern elements from p on match text element t,
// 0 for none. Backtracks only to the last star, so the time is at worst quadratic, in practice linear.
template <typename IsStar, typename Length>
bool match_stars(size_t patterns, size_t texts, const IsStar& is_star, const Length& length) {
  constexpr size_t kNone = std::string_view::npos;
  size_t p = 0, t = 0, star = kNone, star_text = 0;
  while (t < texts) {
    if (p < patterns && is_star(p)) {
      star = p++;
      star_text = t;
    } else if (const size_t matched = p < patterns ? length(p, t) : 0; matched > 0) {
      p += matched;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < patterns && is_star(p)) ++p;
  return p == patterns;
}

// Matches one component, without "/".
bool match_component(std::string_view pattern, std::string_view text) {
  return match_stars(
      pattern.size(), text.size(), [&](size_t p) { return pattern[p] == '*'; },
      [&](size_t p, size_t t) -> size_t {
        if (pattern[p] == '?') return 1;
        if (const auto set = pattern[p] == '[' ? match_set(pattern.substr(p), text[t]) : std::nullopt)
          return set->first ? set->second : 0;
        return pattern[p] == text[t] ? 1 : 0;
      });
}

}  // namespace

std::string_view path_scheme(std::string_view path) {
  const size_t end = path.find("://");
  if (end == std::string_view::npos || end == 0) return {};
  for (const char c : path.substr(0, end)) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '+' && c != '-' && c != '.') return {};
  }
  return path.substr(0, end + 3);
}

std::string join_path(std::string_view left, std::string_view right) {
  if (left.empty() || right.starts_with('/') || !path_scheme(right).empty()) return std::string(right);
  if (right.empty()) return std::string(left);
  std::string out(left);
  if (!out.ends_with('/')) out.push_back('/');
  return out.append(right);
}

std::string parent_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  if (const std::string_view scheme = path_scheme(path); slash < scheme.size()) return std::string(scheme);
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string clean_path(std::string_view path) {
  std::string out(path_scheme(path));
  path.remove_prefix(out.size());
  if (path.starts_with('/') && out.empty()) out = "/";
  for (const std::string_view part : split(path)) {
    if (part.empty() || part == ".") continue;
    if (!out.empty() && out.back() != '/') out.push_back('/');
    out.append(part);
  }
  return out.empty() ? "." : out;
}

std::string absolute_path(std::string_view path) {
  std::string clean = clean_path(path);
  if (!path_scheme(clean).empty()) return clean;
  std::error_code failed;
  std::string out = std::filesystem::absolute(clean, failed).lexically_normal().generic_string();
  if (failed) return clean;
  if (out.size() > 1 && out.ends_with('/')) out.pop_back();  // a ".." at the end leaves a trailing "/"
  return out;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  const auto patterns = split(pattern), texts = split(text);
  return match_stars(
      patterns.size(), texts.size(), [&](size_t p) { return patterns[p] == "**"; },
      [&](size_t p, size_t t) -> size_t { return match_component(patterns[p], texts[t]) ? 1 : 0; });
}

bool has_extension(std::string_view path, std::string_view extension) {
  if (path.size() < extension.size()) return false;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(extension.begin(), extension.end(), path.end() - static_cast<ptrdiff_t>(extension.size()),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

bool has_wildcard(std::string_view pattern) { return pattern.find_first_of("*?[") != std::string_view::npos; }

std::string glob_literal(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const bool special = has_wildcard({&c, 1});
    if (special) out.push_back('[');
    out.push_back(c);
    if (special) out.push_back(']');
  }
  return out;
}

}  // namespace ostro::io
