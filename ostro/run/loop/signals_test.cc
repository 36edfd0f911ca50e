#include "ostro/run/loop/signals.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>
#include <optional>
#include <string>

#include "ostro/run/loop/stop_notice.h"

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

// What a process that trains says when it gets `signals` SIGINTs.
std::string said(std::optional<int64_t> done, std::optional<int64_t> saved, int signals) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    const StopSignals handlers;
    if (done) note_progress(*done, saved);
    for (int i = 0; i < signals; ++i) ::raise(SIGINT);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) == (signals > 1));
  return text;
}

TEST_CASE("a signal says what it does to a run that is trained") {
  const std::string first = "stopping after this step; once more to kill\n";
  CHECK(said(405, 385, 1) == first);
  CHECK(said(405, 385, 2) == first + "killed; step 385 is saved: the same command does 20 steps again\n");
  CHECK(said(5, std::nullopt, 2) == first + "killed; no step is saved: the same command begins anew\n");
  CHECK(said(std::nullopt, std::nullopt, 2).empty());
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
