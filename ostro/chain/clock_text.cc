#include "ostro/chain/clock_text.h"

#include <fmt/core.h>

#include <ctime>

#include "ostro/base/utc_text.h"

namespace ostro::chain {

std::string utc_text(int64_t unix_seconds) { return ostro::utc_text(unix_seconds); }

std::string utc_now() { return utc_text(std::time(nullptr)); }

std::string duration_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "?";
  const int64_t whole = static_cast<int64_t>(seconds + 0.5);
  const int64_t d = whole / 86400, h = whole / 3600 % 24, m = whole / 60 % 60, s = whole % 60;
  if (d > 0) return fmt::format("{}d {:02}:{:02}:{:02}", d, h, m, s);
  if (h > 0) return fmt::format("{}:{:02}:{:02}", h, m, s);
  return fmt::format("{}:{:02}", m, s);
}

}  // namespace ostro::chain
