#include "ostro/base/failpoint.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ostro;

namespace {

// The wait status of a child that passes `passes` times through failpoint("here") with the variable set.
int run_child(const char* spec, int passes) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("OSTRO_FAILPOINT", spec, 1);
    for (int i = 0; i < passes; ++i) {
      failpoint("elsewhere");
      failpoint("here");
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

bool killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }

}  // namespace

TEST_CASE("a failpoint kills at the counted pass and nowhere else") {
  CHECK(killed(run_child("here", 1)));
  CHECK(killed(run_child("here:3", 3)));
  CHECK_FALSE(killed(run_child("here:3", 2)));
  CHECK_FALSE(killed(run_child("nowhere", 5)));
}
