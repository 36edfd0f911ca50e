// percent_encoded, trimmed, header, parse_http_date: small texts of requests and answers. Pure functions.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>

#include "ostro/io/s3/http.h"

namespace ostro::io {

// As the signature of a request wants it: all but letters, digits, "-._~" and, if wanted, "/".
inline std::string percent_encoded(std::string_view text, bool keep_slash) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' || (keep_slash && c == '/');
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

// The text without blanks and line ends at both its ends.
inline std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// The value of a header field, named in lower case; "" when there is none.
inline std::string header(const HttpResponse& response, const char* name) {
  const auto found = response.headers.find(name);
  return found == response.headers.end() ? "" : found->second;
}

// Seconds since 1970 of a date like "Mon, 12 Oct 2009 17:50:30 GMT" (s3_client.cc).
std::optional<int64_t> parse_http_date(const std::string& text);

}  // namespace ostro::io
