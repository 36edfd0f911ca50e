#include "ostro/run/notice/signals.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>
#include <optional>
#include <string>

#include "ostro/run/notice/stop_notice.h"

namespace ostro::run {
namespace {

TEST_CASE("the first signal is a wish") {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    const StopSignals signals;
    CHECK(!signals.stop_requested());
    ::raise(number);
    CHECK(signals.stop_requested());
    CHECK(signals.received() == number);
  }
  // The next one starts without a wish.
  CHECK(!StopSignals().stop_requested());
}

// What becomes of a process that gets these signals, one after the other: its wait status.
int status_after(std::initializer_list<int> numbers) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const StopSignals signals;
    int count = 0;
    for (const int number : numbers) {
      ::raise(number);
      if (signals.count() != ++count || signals.received() != *numbers.begin()) ::_exit(1);
    }
    ::_exit(2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

TEST_CASE("the second signal is no more than the first; the third ends the process, whatever its kind") {
  for (const int last : {SIGTERM, SIGINT, SIGHUP}) {
    const int twice = status_after({SIGINT, last});
    CHECK((WIFEXITED(twice) && WEXITSTATUS(twice) == 2));
    const int thrice = status_after({SIGTERM, SIGINT, last});
    REQUIRE(WIFSIGNALED(thrice));
    CHECK(WTERMSIG(thrice) == last);
  }
}

TEST_CASE("nohup holds, and a reader that is gone ends nothing") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::signal(SIGHUP, SIG_IGN);
    ::signal(SIGPIPE, SIG_DFL);
    const StopSignals signals;
    ::raise(SIGHUP);
    ::raise(SIGPIPE);
    ::_exit(signals.stop_requested() ? 1 : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
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
  CHECK(WIFSIGNALED(status) == (signals > 2));
  return text;
}

TEST_CASE("a signal says what it does to a run that is trained") {
  const std::string once = "stopping after this step; twice more to kill\n";
  const std::string first = once + "stopping after this step; once more to kill\n";
  CHECK(said(405, 385, 1) == once);
  CHECK(said(405, 385, 2) == first);
  CHECK(said(405, 385, 3) == first + "killed; step 385 is saved: the same command does 20 steps again\n");
  CHECK(said(5, std::nullopt, 3) == first + "killed; no step is saved: the same command begins anew\n");
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
