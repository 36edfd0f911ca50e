#include "ostro/audit/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "ostro/base/one_line.h"

namespace ostro::audit {
namespace {

// The text with every number, and every hash, as one '#'.
std::string shape_of(const std::string& text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    bool has_digit = false;
    while (end < text.size() && is_digit(text[end])) has_digit |= text[end++] <= '9';
    if (has_digit) {
      out += '#';
      i = end;
    } else {
      end = std::max(end, i + 1);
      out.append(text, i, end - i);
      i = end;
    }
  }
  return out;
}

}  // namespace

const char* verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kEqual: return "equal";
    case Verdict::kIncomplete: return "incomplete";
    case Verdict::kCannotCheck: return "cannot check";
    case Verdict::kDiffers: return "differs";
  }
  return "";
}

void sort_worst_first(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings,
                           [](const Finding& a, const Finding& b) { return a.verdict > b.verdict; });
}

Verdict verdict_of_sorted(const std::vector<Finding>& findings) {
  return findings.empty() ? Verdict::kEqual : findings.front().verdict;
}

std::string finding_text(const Finding& finding) {
  const bool has_place = finding.text.starts_with("at ");
  // What a record says comes from outside.
  return one_line(fmt::format("{}{} {}", verdict_word(finding.verdict), has_place ? "" : ":", finding.text));
}

Finding finding_of(const Error& error) {
  return {error.code() == ErrorCode::kCorrupt ? Verdict::kDiffers : Verdict::kCannotCheck, error.message()};
}

std::vector<Finding> folded(const std::vector<Finding>& findings) {
  std::vector<Finding> out;
  std::vector<int64_t> more;
  std::map<std::pair<Verdict, std::string>, size_t> place;
  for (const Finding& finding : findings) {
    const auto [it, is_new] = place.try_emplace({finding.verdict, shape_of(finding.text)}, out.size());
    if (is_new) {
      out.push_back(finding);
      more.push_back(0);
    } else {
      ++more[it->second];
    }
  }
  for (size_t i = 0; i < out.size(); ++i)
    if (more[i] > 0) out[i].text += fmt::format(" (and {} more like it)", more[i]);
  return out;
}

}  // namespace ostro::audit
