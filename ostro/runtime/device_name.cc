#include "ostro/runtime/device_name.h"

#include <fmt/core.h>

#include <charconv>
#include <string_view>

namespace ostro::runtime {

Result<DeviceName> parse_device(const std::string& option, const std::string& text) {
  constexpr std::string_view kNumbered = "cuda:";
  constexpr int kMost = 1023;
  if (text == "cpu") return DeviceName{};
  if (text == "auto") return DeviceName{.kind = DeviceName::Kind::kAuto};
  if (text == "cuda") return DeviceName{.kind = DeviceName::Kind::kCuda};
  int ordinal = -1;
  const char *begin = text.data() + kNumbered.size(), *end = text.data() + text.size();
  if (text.starts_with(kNumbered) && begin != end && *begin != '-')
    if (const auto [stop, error] = std::from_chars(begin, end, ordinal);
        error == std::errc() && stop == end && ordinal <= kMost)
      return DeviceName{.kind = DeviceName::Kind::kCuda, .ordinal = ordinal};
  return invalid_argument(fmt::format(
      "{}: \"{}\" is no device; use cpu, cuda, cuda:N or auto (ostro devices lists them)", option, text));
}

}  // namespace ostro::runtime
