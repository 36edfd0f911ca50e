#include "ostro/run/loop/signals.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

namespace ostro::run {
namespace {

TEST_CASE("the first signal is a wish") {
  for (const int number : {SIGTERM, SIGINT}) {
    const StopSignals signals;
    CHECK(!signals.stop_requested());
    ::raise(number);
    CHECK(signals.stop_requested());
    CHECK(signals.received() == number);
  }
  // The next one starts without a wish.
  CHECK(!StopSignals().stop_requested());
}

TEST_CASE("the second signal ends the process, also one of the other kind") {
  for (const int second : {SIGTERM, SIGINT}) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const StopSignals signals;
      ::raise(SIGTERM);
      if (signals.received() != SIGTERM) ::_exit(1);
      ::raise(second);
      ::_exit(2);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == second);
  }
}

TEST_CASE("afterwards signals are what they were before") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // doctest's own handlers are not the ones under test
    ::signal(SIGTERM, SIG_DFL);
    {
      const StopSignals signals;
    }
    ::raise(SIGTERM);
    ::_exit(2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
}

}  // namespace
}  // namespace ostro::run
