// TraceError: the exception that tracing throws when ops do not fit together, with the user's call site. Code
// outside of tracing returns Result instead; only templates of conversations (chat) throw inside their room.
#pragma once

#include <stdexcept>
#include <string>

namespace ostro {

// The message of an op's error ends with the call site, "(llama.cc:91)".
class TraceError : public std::runtime_error {
 public:
  explicit TraceError(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace ostro
