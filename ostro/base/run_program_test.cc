// Programs that are run to their end.
#include "ostro/base/run_program.h"

#include <doctest/doctest.h>

#include <csignal>

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
  std::optional<int> status = 7;
  const auto late = run_program(
      ProgramCall{{"sh", "-c", "sleep 1000 & wait"}, "", std::chrono::milliseconds(50), {}, &status});
  REQUIRE(!late.ok());
  CHECK(!status);
  CHECK(late.error().message() == "sh took longer than 0.1 s and was killed");
  const auto failed =
      run_program(ProgramCall{{"sh", "-c", "echo why; exit 3"}, "", std::chrono::seconds(300), {}, &status});
  REQUIRE(!failed.ok());
  CHECK(status == 3);
  CHECK(!run_program(ProgramCall{{"sh", "-c", "kill -9 $$"}, "", {}, {}, &status}).ok());
  CHECK(!status);
  CHECK(failed.error().message() == "sh ended with status 3: why");
  CHECK(run_program(ProgramCall{{"no-such-program-of-ostro"}, "x", {}}).error().code() ==
        ErrorCode::kNotFound);
}

TEST_CASE("a program that is no longer wanted is killed with what it started") {
  int asked = 0;
  const auto stopped =
      run_program(ProgramCall{{"sh", "-c", "sleep 1000 & wait"}, "", {}, [&] { return ++asked > 2; }});
  REQUIRE(!stopped.ok());
  CHECK(stopped.error().code() == ErrorCode::kBusy);
  CHECK(run_program(ProgramCall{{"true"}, "", {}, [] { return false; }}).ok());
}

TEST_CASE("a status that is lost, because this process ignores SIGCHLD, is no success") {
  auto* const before = std::signal(SIGCHLD, SIG_IGN);
  const auto waited = run_program({"false"});
  const auto limited = run_program(ProgramCall{{"false"}, "", std::chrono::seconds(300)});
  std::signal(SIGCHLD, before);
  for (const auto* lost : {&waited, &limited}) {
    REQUIRE(!lost->ok());
    CHECK(lost->error().message() ==
          "how false ended is not known: waitpid: No child processes; this process must not ignore SIGCHLD");
  }
}

}  // namespace
}  // namespace ostro
