// The end of a process whose alerts wait for a program.
#include "ostro/monitor/alert_command.h"

#include <doctest/doctest.h>

#include "ostro/base/log.h"

namespace ostro::monitor {
namespace {

// What is logged while a program that takes long is run for five alerts, until the object's end.
std::string logged(const std::vector<std::string>& words, std::chrono::milliseconds at_end) {
  std::string log;
  const LogSink before =
      set_log_sink([&](LogLevel, std::string_view line) { log += std::string(line) + "\n"; });
  {
    AlertCommand command(words, at_end);
    for (int i = 0; i < 5; ++i) command.run("an alert\n");
  }
  set_log_sink(before);
  return log;
}

TEST_CASE("alerts that wait at the end are bounded together, and those that were not given are counted") {
  CHECK(logged({"sleep", "1000"}, std::chrono::milliseconds(0)) ==
        "trainer.alert_command: 5 alerts were not given to it before this process ended\n");
  CHECK(logged({"true"}, std::chrono::seconds(300)).empty());
  const std::string failed = logged({"false"}, std::chrono::seconds(300));
  CHECK_MESSAGE(failed.find("false ended with status 1") != std::string::npos, failed);
}

}  // namespace
}  // namespace ostro::monitor
