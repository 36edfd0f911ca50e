// percent_encoded, trimmed, is_one_line, header, server_of_url, parse_*: small texts of requests and answers.
// Pure functions.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>

#include "ostro/objects/web/http.h"

namespace ostro::objects {

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

// Whether it can be a part of a header field: it has no line ends or other control characters.
inline bool is_one_line(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) return false;
  return true;
}

// The scheme and the host of an address, with its port. The rest may be a secret.
std::string server_of_url(std::string_view url);

// The value of a header field, named in lower case; "" when there is none.
inline std::string header(const HttpResponse& response, const char* name) {
  const auto found = response.headers.find(name);
  return found == response.headers.end() ? "" : found->second;
}

// Seconds since 1970 of a date like "Mon, 12 Oct 2009 17:50:30 GMT".
std::optional<int64_t> parse_http_date(const std::string& text);
// Whole seconds since 1970 of a date that begins like "2009-10-12T17:50:30", of UTC whatever follows; the
// header Last-Modified is not more precise.
std::optional<int64_t> parse_iso_date(const std::string& text);
// Whole seconds since 1970 of a date like "2009-10-12T17:50:30Z" or "2009-10-12T19:50:30.5+02:00". Nothing
// for any other text, also for one that does not say of which zone it is.
std::optional<int64_t> parse_zoned_date(const std::string& text);

}  // namespace ostro::objects
