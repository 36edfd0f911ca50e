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
  const std::string_view digits =
      text.starts_with(kNumbered) ? std::string_view(text).substr(kNumbered.size()) : std::string_view();
  if (!digits.starts_with('-'))
    if (const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
        error == std::errc() && stop == digits.data() + digits.size() && ordinal <= kMost)
      return DeviceName{.kind = DeviceName::Kind::kCuda, .ordinal = ordinal};
  return invalid_argument(fmt::format(
      "{}: \"{}\" is no device; use cpu, cuda, cuda:N or auto (ostro devices lists them)", option, text));
}

}  // namespace ostro::runtime
