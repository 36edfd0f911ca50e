#include "ostro/shell/shared/slice_sizes.h"

#include <doctest/doctest.h>

namespace ostro::cli {
namespace {

TEST_CASE("sizes of slices become the names of each worker's slice") {
  CHECK(slice_names("--slices", "2:1:3", 6).value() ==
        std::vector<std::string>{"0", "0", "1", "2", "2", "2"});
  CHECK(slice_names("--slices", "4", 4).value() == std::vector<std::string>(4, "0"));
  for (const char* wrong : {"", ":", "2:", ":2", "2:x", "0:4", "2:-1", "2::2", "1025", "2:1", "3:2"}) {
    const auto names = slice_names("--slices", wrong, 4);
    REQUIRE_MESSAGE(!names.ok(), wrong);
    CHECK(names.error().message().starts_with("--slices: "));
  }
}

}  // namespace
}  // namespace ostro::cli
