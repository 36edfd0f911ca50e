#include "ostro/run/report/progress.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/report/run_log.h"

namespace ostro::run {
namespace {

using std::chrono::milliseconds;

// A console that keeps what it was given, and a clock that stands still.
struct Screen {
  std::string text;
  Console::Write write() {
    return [this](std::string_view more) { text += more; };
  }
};

TEST_CASE("a terminal shows lines above one line that is redrawn and fits") {
  Screen screen;
  {
    Console console(screen.write(), [] { return 10; });
    console.line("first");
    console.status("0123456789abc");
    console.status("0123456789xyz");  // the same where it can be seen
    console.line("a\nb\x1b[2J");
    console.status("");
    console.status("last");
  }
  CHECK(screen.text ==
        "first\n"
        "\r\x1b[K012345678"
        "\r\x1b[Ka b [2J\n012345678"
        "\r\x1b[K"
        "\r\x1b[Klast\n");
}

TEST_CASE("fields that do not fit are dropped whole, the last ones first") {
  const std::string line = "step 267/730 36.6%  loss 2.9482  15.0k tokens/s  ETA 1:03";
  CHECK(fitted(line, 100) == line);
  CHECK(fitted(line, 58) == line);
  CHECK(fitted(line, 57) == "step 267/730 36.6%  loss 2.9482  15.0k tokens/s");
  CHECK(fitted(line, 40) == "step 267/730 36.6%  loss 2.9482");
  CHECK(fitted(line, 19) == "step 267/730 36.6%");
  CHECK(fitted(line, 10) == "step 267/");
  CHECK(fitted("  12", 4) == "  1");
  CHECK(fitted("", 4).empty());
}

TEST_CASE("a terminal that was made narrower shows the line in several rows, and all of them are erased") {
  Screen screen;
  int columns = 30;
  Console console(screen.write(), [&] { return columns; });
  console.status("step 1/9  loss 2.5  1 tokens/s");
  columns = 10;
  console.status("step 2/9  loss 2.4  1 tokens/s");
  console.line("x");
  columns = 30;
  console.status("step 3/9  loss 2.3  1 tokens/s");
  CHECK(screen.text ==
        "\r\x1b[Kstep 1/9  loss 2.5"
        "\r\x1b[1A\x1b[Jstep 2/9"
        "\r\x1b[Kx\nstep 2/9"
        "\r\x1b[Kstep 3/9  loss 2.3");
  console.status("");
}

TEST_CASE("a NaN is shown without its sign") {
  for (const double nan : {std::nan(""), -std::nan("")})
    CHECK(fmt::format("{}", without_nan_sign(nan)) == "nan");
  CHECK(without_nan_sign(-1.5) == -1.5);
}

TEST_CASE("elsewhere only lines that stay are shown") {
  Screen screen;
  {
    Console console(screen.write(), [] { return 0; });
    console.status("x");
    console.line("y");
  }
  CHECK(screen.text == "y\n");
}

TEST_CASE("progress draws ten times a second on a terminal, and the last step stays") {
  Screen screen;
  std::vector<std::string> logged;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { logged.emplace_back(line); });
  int asked = 0;
  {
    Console console(screen.write(), [] { return 120; });
    milliseconds now{5};
    Progress progress(console, 0, 400, [&] { return now; });
    for (int64_t step = 1; step <= 400; ++step, now += milliseconds(5))
      progress.update(step, 1000, [&] {
        ++asked;
        return ProgressNumbers{1.0 / static_cast<double>(step), 0.375, 1'500'000'000};
      });
    CHECK(progress.steps_per_second() == doctest::Approx(200));
    CHECK(progress.tokens_per_second() == doctest::Approx(200'000));
  }
  set_log_sink(before);
  CHECK(asked == 21);  // 2 s, a line each 0.1 s, and the last
  CHECK(screen.text.find(
            "\r\x1b[Kstep 201/400 50.2%  loss 0.0050  200.0k tokens/s  ETA 0:01  MFU 37.5%  1.50 GB") !=
        std::string::npos);
  REQUIRE(logged.size() == 1);
  CHECK(logged[0] == "step 400/400 100.0%  loss 0.0025  200.0k tokens/s  ETA 0:00  MFU 37.5%  1.50 GB");
  CHECK(screen.text.ends_with("\r\x1b[K"));
}

TEST_CASE("elsewhere progress is a log line every five seconds") {
  Screen screen;
  std::vector<std::string> logged;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view line) { logged.emplace_back(line); });
  {
    Console console(screen.write(), [] { return 0; });
    milliseconds now{0};
    Progress progress(console, 100, 1000, [&] { return now; });
    // Slow at first: the first step does not count for the rate.
    for (int64_t step = 101; step <= 111; ++step, now += milliseconds(1000))
      progress.update(step, 10, [] { return ProgressNumbers{2.5, 0, 0}; });
  }
  set_log_sink(before);
  REQUIRE(logged.size() == 3);
  CHECK(logged[0] == "step 101/1000 10.1%  loss 2.5000");
  CHECK(logged[1] == "step 106/1000 10.6%  loss 2.5000  10 tokens/s  ETA 14:54");
  CHECK(logged[2] == "step 111/1000 11.1%  loss 2.5000  10 tokens/s  ETA 14:49");
  CHECK(screen.text.empty());
}

TEST_CASE("the run's log keeps lines with time and level, and the console shows them") {
  io::MemoryFileSystem fs;
  Screen screen;
  {
    Console console(screen.write(), [] { return 0; });
    RunLog log(console);
    log_warning("early");
    CHECK(screen.text == "warning: early\n");
    check_ok(log.open(fs, "log.txt"));
    log_info("step 1");
    log_warning("slow");
    log.to_file(LogLevel::kInfo, "quiet");
  }
  CHECK(screen.text == "warning: early\nstep 1\nwarning: slow\n");
  const std::string text = *fs.read_file("log.txt");
  CHECK(text.substr(20, 15) == " warning early\n");
  CHECK(text.substr(55, 16) == " info    step 1\n");
  CHECK(text.find(" warning slow\n") != std::string::npos);
  CHECK(text.find(" info    quiet\n") != std::string::npos);
}

TEST_CASE("a full disk ends the log, is told once, and stops nothing") {
  io::MemoryFileSystem memory;
  io::FaultyFileSystem fs(memory);
  Screen screen;
  {
    Console console(screen.write(), [] { return 0; });
    RunLog log(console);
    check_ok(log.open(fs, "log.txt"));
    fs.limit_space(10);
    log_info("one");
    log_info("two");
  }
  CHECK(screen.text.find("warning: the log ends here: ") == 0);
  CHECK(screen.text.ends_with("\none\ntwo\n"));
}

}  // namespace
}  // namespace ostro::run
