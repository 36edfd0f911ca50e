#include "ostro/runtime/device_name.h"

#include <doctest/doctest.h>

namespace ostro::runtime {
namespace {

TEST_CASE("device names: the four forms, and nothing like them") {
  using Kind = DeviceName::Kind;
  CHECK(parse_device("--device", "cpu")->kind == Kind::kCpu);
  CHECK(parse_device("--device", "auto")->kind == Kind::kAuto);
  CHECK(parse_device("--device", "cuda")->kind == Kind::kCuda);
  CHECK(parse_device("--device", "cuda")->ordinal == 0);
  CHECK(parse_device("--device", "cuda:12")->ordinal == 12);
  for (const char* wrong : {"", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:1x", "cuda: 1", "cuda:1024",
                            "cuda:99999999999", "cpu:0", "cuda,1", " cpu"}) {
    CAPTURE(wrong);
    const auto parsed = parse_device("trainer.device", wrong);
    REQUIRE(!parsed.ok());
    CHECK(parsed.error().code() == ErrorCode::kInvalidArgument);
    CHECK(parsed.error().message().find("trainer.device: \"" + std::string(wrong) + "\"") == 0);
  }
}

}  // namespace
}  // namespace ostro::runtime
