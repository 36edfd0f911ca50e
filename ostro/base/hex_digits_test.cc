#include "ostro/base/hex_digits.h"

#include <doctest/doctest.h>

namespace ostro {
namespace {

TEST_CASE("hexadecimal digits of bytes, and back; what are none is refused") {
  const std::string bytes("\x00\x7f\xff", 3);
  CHECK(to_hex_digits(bytes) == "007fff");
  CHECK(from_hex_digits("007fff") == bytes);
  CHECK(from_hex_digits("") == "");
  for (const char* none : {"0", "0g", "+1", "-1", " 1", "0x", "7F", "fF"})
    CHECK_FALSE(from_hex_digits(none).has_value());
}

}  // namespace
}  // namespace ostro
