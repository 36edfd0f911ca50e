// Mistakes: the errors of one configuration, gathered so that a user sees all of them at once.
//
// A value type, not thread-safe. Several errors leave as one Error, whose message holds each behind
// kNextError: printed behind "error: ", every error stands in a line of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::config {

inline constexpr std::string_view kNextError = "\nerror: ";

// The errors that a message holds; a message without kNextError holds one.
std::vector<std::string> split_errors(const std::string& message);

class Mistakes {
 public:
  // Adds the error of `status`, or each of them if it holds several, unless the same text was added before.
  // Returns whether the status was ok.
  bool add(const Status& status);

  bool empty() const { return errors_.empty(); }

  // Ok, or all errors as one. Its code is that of the first.
  Status status() const;

 private:
  std::vector<Error> errors_;
};

}  // namespace ostro::config
