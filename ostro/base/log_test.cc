// The log of the process.
#include "ostro/base/log.h"

#include <doctest/doctest.h>

namespace ostro {
namespace {

TEST_CASE("a line that is logged within the sink does not wait for the sink") {
  int lines = 0;
  LogSink before = set_log_sink([&](LogLevel, std::string_view) {
    ++lines;
    log_info("logged by a sink");
  });
  log_info("one");
  log_info("two");
  set_log_sink(std::move(before));
  CHECK(lines == 2);
}

}  // namespace
}  // namespace ostro
