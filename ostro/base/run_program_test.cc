// Programs that are run to their end.
#include "ostro/base/run_program.h"

#include <doctest/doctest.h>

namespace ostro {
namespace {

TEST_CASE("words reach a program as they are, and so does its input") {
  const auto out = run_program(ProgramCall{{"printf", "%s|", "a b", "$HOME", "it's", ";ls"}, "", {}});
  REQUIRE(out.ok());
  CHECK(*out == "a b|$HOME|it's|;ls|");
  const auto read = run_program(ProgramCall{{"cat"}, "one\ntwo", std::chrono::seconds(300)});
  REQUIRE(read.ok());
  CHECK(*read == "one\ntwo");
  CHECK(run_program({"cat"}).value().empty());
}

TEST_CASE("a program that takes too long is killed with what it started; a status is an error") {
  const auto late =
      run_program(ProgramCall{{"sh", "-c", "sleep 1000 & wait"}, "", std::chrono::milliseconds(50)});
  REQUIRE(!late.ok());
  CHECK(late.error().message() == "sh took longer than 0.1 s and was killed");
  const auto failed =
      run_program(ProgramCall{{"sh", "-c", "echo why; exit 3"}, "", std::chrono::seconds(300)});
  REQUIRE(!failed.ok());
  CHECK(failed.error().message() == "sh ended with status 3: why");
  CHECK(run_program(ProgramCall{{"no-such-program-of-ostro"}, "x", {}}).error().code() ==
        ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ostro
