#include "ostro/cli/shared/engine_choice.h"

#include <doctest/doctest.h>

#include <cstdlib>

namespace ostro::cli {
namespace {

TEST_CASE("OSTRO_EXECUTOR names the engine, and a wrong name is an error") {
  unsetenv("OSTRO_EXECUTOR");
  const auto usual = make_engine();
  REQUIRE(usual.ok());
  CHECK(usual.value()->info().name.starts_with("cpu"));
  setenv("OSTRO_EXECUTOR", "interpreter", 1);
  const auto reference = make_engine();
  REQUIRE(reference.ok());
  CHECK(reference.value()->info().name != usual.value()->info().name);
  setenv("OSTRO_EXECUTOR", "fast", 1);
  const auto wrong = make_engine();
  REQUIRE(!wrong.ok());
  CHECK(wrong.error().code() == ErrorCode::kInvalidArgument);
  CHECK(wrong.error().message().find("interpreter") != std::string::npos);
  unsetenv("OSTRO_EXECUTOR");
}

}  // namespace
}  // namespace ostro::cli
