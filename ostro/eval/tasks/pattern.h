// Pattern: a regular expression as Python's re has it: over characters, not bytes, with Unicode's letters,
// digits and spaces. It is run by PCRE2.
//
// Texts and patterns are valid UTF-8. What Python writes in another way than PCRE2 (\uXXXX, \Z, {,n}) is
// translated. A search takes bounded work: a pattern that backtracks without end is an error, not a hang.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::eval {

// Immutable; threads may share one.
class Pattern {
 public:
  // Error: what is wrong with the pattern, and at which of its bytes.
  static Result<Pattern> compile(const std::string& pattern);

  // A match: the whole and then each group; a group that did not take part is nothing.
  using Match = std::vector<std::optional<std::string_view>>;
  // All matches from left to right, as re.finditer gives them. The views point into `text`. Error: the search
  // needs too much work or memory.
  Result<std::vector<Match>> find_all(std::string_view text) const;

  // The text without what matches. Error: as find_all.
  Result<std::string> remove_from(const std::string& text) const;

 private:
  struct Code;
  Pattern(std::shared_ptr<const Code> code, std::string source)
      : code_(std::move(code)), source_(std::move(source)) {}

  std::shared_ptr<const Code> code_;
  std::string source_;
};

}  // namespace ostro::eval
