// TraceError: the one exception of the project, thrown while tracing when ops do not fit, with the user's
// call site.
#pragma once

#include <stdexcept>
#include <string>

namespace ostro {

// Errors of ops carry the call site in the message.
class TraceError : public std::runtime_error {
 public:
  explicit TraceError(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace ostro
