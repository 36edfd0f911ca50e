#include "ostro/shell/shared/sim_workers.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace ostro::cli {

Result<int64_t> sim_workers() {
  const char* value = std::getenv("OSTRO_SIM_WORKERS");
  const std::string_view text = value == nullptr ? "" : value;
  if (text.empty()) return int64_t{1};
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 1 || n > 1024)
    return invalid_argument(fmt::format("OSTRO_SIM_WORKERS is \"{}\"; use a number from 1 to 1024", text));
  return n;
}

}  // namespace ostro::cli
