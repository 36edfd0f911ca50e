#include "ostro/engines/engines.h"

#include <doctest/doctest.h>

#include <cstdlib>

namespace ostro::engines {
namespace {

TEST_CASE("OSTRO_EXECUTOR names the engine, and a wrong name is an error") {
  unsetenv("OSTRO_EXECUTOR");
  const auto usual = make(wish_from_environment().value());
  REQUIRE(usual.ok());
  CHECK(usual.value()->info().name.starts_with("cpu"));
  setenv("OSTRO_EXECUTOR", "interpreter", 1);
  const auto reference = make(wish_from_environment().value());
  REQUIRE(reference.ok());
  CHECK(reference.value()->info().name != usual.value()->info().name);
  setenv("OSTRO_EXECUTOR", "fast", 1);
  const auto wrong = wish_from_environment();
  REQUIRE(!wrong.ok());
  CHECK(wrong.error().code() == ErrorCode::kInvalidArgument);
  CHECK(wrong.error().message().find("interpreter") != std::string::npos);
  unsetenv("OSTRO_EXECUTOR");
}

}  // namespace
}  // namespace ostro::engines
