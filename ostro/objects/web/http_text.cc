#include "ostro/objects/web/http_text.h"

#include <ctime>

namespace ostro::objects {

std::optional<int64_t> parse_http_date(const std::string& text) {
  std::tm time{};
  const char* end = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &time);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return static_cast<int64_t>(timegm(&time));
}

std::optional<int64_t> parse_iso_date(const std::string& text) {
  std::tm time{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time) == nullptr) return std::nullopt;
  return static_cast<int64_t>(timegm(&time));
}

std::optional<int64_t> parse_zoned_date(const std::string& text) {
  std::tm time{};
  const char* at = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (at == nullptr) return std::nullopt;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (*at == '.' && digit(at[1]))
    for (++at; digit(*at);) ++at;
  const int64_t local = timegm(&time);
  const std::string_view zone(at);
  if (zone == "Z") return local;
  if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':') return std::nullopt;
  for (const size_t i : {1, 2, 4, 5})
    if (!digit(zone[i])) return std::nullopt;
  const int64_t hours = (zone[1] - '0') * 10 + (zone[2] - '0'),
                minutes = (zone[4] - '0') * 10 + (zone[5] - '0');
  if (hours > 23 || minutes > 59) return std::nullopt;
  return local - (zone[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

std::string server_of_url(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return "an address without a scheme";
  const size_t begin = scheme + 3;
  std::string_view host = url.substr(begin, url.find_first_of("/?#\\", begin) - begin);
  if (const size_t user = host.rfind('@'); user != std::string_view::npos) host.remove_prefix(user + 1);
  return std::string(url.substr(0, begin)) + std::string(host);
}

}  // namespace ostro::objects
