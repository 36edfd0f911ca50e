#include "ostro/engines/engines.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "ostro/engines/devices.h"

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

TEST_CASE("workers have the devices that were named, and share those that several have") {
  const auto devices = devices_of_workers({"cpu", "cuda:1", "cuda:7", "cuda:1"});
  REQUIRE(devices.ok());
  std::vector<std::string> told;
  for (const WorkerDevice& d : *devices) told.push_back(d.device + " " + std::to_string(d.sharers));
  CHECK(told == std::vector<std::string>{"cpu 1", "cuda:1 2", "cuda:7 1", "cuda:1 2"});
  const auto wrong = devices_of_workers({"cpu", "gpu"});
  REQUIRE(!wrong.ok());
  CHECK(wrong.error().code() == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ostro::engines
