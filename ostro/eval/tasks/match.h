// Matcher: compares generated text with the right answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/eval/tasks/options.h"
#include "ostro/eval/tasks/pattern.h"

namespace ostro::eval {

// The last number in a text, in a canonical form: "1,234.50 USD" gives "1234.5". Nothing if there is none.
std::optional<std::string> last_number(std::string_view text);

// The filters and comparisons of one generate_until task. Immutable, so threads may share it.
class Matcher {
 public:
  // Error: a regular expression that cannot be used, with its key.
  static Result<Matcher> create(const std::string& key, const GenerateOptions& options);

  // The text that the regular expression extracts; without one the whole text. White space around it is
  // dropped. Errors: as Pattern::find_all.
  Result<std::string> extract(const std::string& text) const;
  // True if an answer equals the extracted text, after the options' normalization; or, for numeric, if the
  // last numbers of both are equal.
  Result<bool> exact(const std::string& extracted, const std::vector<std::string>& answers) const;
  bool numeric(const std::string& extracted, const std::vector<std::string>& answers) const;

 private:
  Result<std::string> normalize(std::string text) const;

  GenerateOptions options_;
  std::optional<Pattern> pattern_;
  std::vector<Pattern> ignored_;
};

}  // namespace ostro::eval
