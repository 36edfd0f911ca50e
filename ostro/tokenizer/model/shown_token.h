// shown_token: a token as text for an error message, in quotes, cut to 60 bytes, because added tokens can be
// long.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace ostro::tokenizer {

inline std::string shown_token(std::string_view token) {
  return fmt::format("\"{}\"{}", token.substr(0, 60), token.size() > 60 ? "..." : "");
}

}  // namespace ostro::tokenizer
