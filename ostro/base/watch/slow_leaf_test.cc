#include "ostro/base/watch/slow_leaf.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ostro;

namespace {

// What a leaf counts for which a worker computed for no time.
double counted(int64_t step, int64_t rank) { return slow_leaf(step, rank, std::chrono::duration<double>(0)); }

}  // namespace

TEST_CASE("slow leaves: the entry of a worker with the highest step counts, and others are as they were") {
  ::unsetenv("OSTRO_SIM_SLOW");
  CHECK_FALSE(leaves_are_slow());
  CHECK(slow_leaf(1, 0, std::chrono::duration<double>(2.5)) == 2.5);
  ::setenv("OSTRO_SIM_SLOW", "1:3ms,2:5ms,1:4ms@8,1:2ms@5", 1);
  CHECK(leaves_are_slow());
  CHECK(counted(1, 0) == 0);
  CHECK(counted(1, 1) == 0.003);
  CHECK(counted(4, 1) == 0.003);
  CHECK(counted(5, 1) == 0.002);
  CHECK(counted(9, 1) == 0.004);
  CHECK(counted(9, 2) == 0.005);
  // A leaf that computes for longer does not wait, and counts the same.
  CHECK(slow_leaf(1, 1, std::chrono::duration<double>(1000)) == 0.003);
  ::unsetenv("OSTRO_SIM_SLOW");
}

TEST_CASE("slow leaves: the worker really waits, and a factor is measured") {
  const std::chrono::duration<double> took(0.01);
  for (const char* how : {"0:20ms", "0:x3"}) {
    ::setenv("OSTRO_SIM_SLOW", how, 1);
    const auto begin = std::chrono::steady_clock::now();
    const double counts = slow_leaf(1, 0, took);
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    CHECK(waited.count() >= (how[2] == 'x' ? 0.02 : 0.01));
    CHECK(counts >= (how[2] == 'x' ? 0.03 : 0.02));
    CHECK(counts <= 2 * took.count() + waited.count());  // in seconds
  }
  ::unsetenv("OSTRO_SIM_SLOW");
}

TEST_CASE("slow leaves: a value that cannot be read ends the process") {
  for (const char* value :
       {"1", "1:", "x:2ms", "1:2", "1:x0.5", "1:xnan", "1:0ms", "1:2ms@", "1:2ms@x", "-1:2ms"}) {
    CAPTURE(value);
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGABRT, SIG_DFL);  // not the one of doctest
      ::close(2);
      ::setenv("OSTRO_SIM_SLOW", value, 1);
      (void)counted(1, 0);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGABRT);
  }
}
