#include "ostro/base/utc_text.h"

#include <fmt/core.h>

#include <ctime>

namespace ostro {

std::string utc_text(int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace ostro
