#include "ostro/base/error.h"

#include <doctest/doctest.h>

#include <memory>

namespace ostro {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return invalid_argument(fmt::format("{} is odd; give an even number", n));
  return n / 2;
}

Result<int> quarter(int n) {
  ASSIGN_OR_RETURN(int h, half(n));
  ASSIGN_OR_RETURN(int q, half(h));
  return q;
}

Status is_even(int n) {
  RETURN_IF_ERROR(half(n));
  return Status();
}

TEST_CASE("a Result carries the value or the error through the macros") {
  CHECK(quarter(8).value() == 2);
  CHECK(!quarter(6).ok());
  CHECK(quarter(6).error().message() == "3 is odd; give an even number");
  CHECK(is_even(2).ok());
  CHECK(is_even(3).error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("context is put in front") {
  CHECK(not_found("no key").with_context("a.yaml").message() == "a.yaml: no key");
}

TEST_CASE("a Result moves a value that cannot be copied") {
  auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(3); };
  auto value = std::move(make()).value();
  CHECK(*value == 3);
}

}  // namespace
}  // namespace ostro
