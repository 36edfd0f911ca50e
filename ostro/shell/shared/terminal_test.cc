#include "ostro/shell/shared/terminal.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace ostro::cli {
namespace {

TEST_CASE("a reader that has gone is no error, and is known to have gone") {
  auto* const before = std::signal(SIGPIPE, SIG_IGN);
  std::fflush(stdout);
  const int kept = dup(1);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(dup2(ends[1], 1) == 1);
  const bool written = write_stdout("read").ok(), early = stdout_closed();
  close(ends[0]);
  const bool lost = write_stdout("lost").ok(), late = stdout_closed();
  dup2(kept, 1);
  close(ends[1]);
  close(kept);
  std::signal(SIGPIPE, before);
  CHECK(written);
  CHECK(!early);
  CHECK(lost);
  CHECK(late);
}

}  // namespace
}  // namespace ostro::cli
