#include <doctest/doctest.h>

#include <sstream>

#include "ostro/cli/run/watch_server.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/shell/shared/watch_view.h"

namespace ostro::cli {
namespace {

run::RunStatus running() {
  run::RunStatus status;
  status.directory = "runs/a";
  status.state = "running";
  status.step = 75;
  status.total = 200;
  status.loss = 2.5;
  status.tokens_per_second = 15'000;
  status.eta_seconds = 63;
  return status;
}

page::History some_history() {
  page::History history;
  history.last_step = 75;
  page::Bins& loss = history.metrics.try_emplace(page::kTrainLoss, 64).first->second;
  for (int64_t step = 1; step <= 75; ++step) loss.add(step, 10.0 / static_cast<double>(step));
  history.metrics.try_emplace("eval/loss", 64).first->second.add(50, 3.25);
  history.metrics.try_emplace("throughput/mfu", 64).first->second.add(75, 0.383);
  return history;
}

std::vector<std::string> lines_of_screen(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

TEST_CASE("watching: the screen has state, bar, numbers and curve, and fits every terminal") {
  const std::vector<std::string> wide =
      lines_of_screen(watch_screen(running(), some_history(), {100, true, false}, 40));
  CHECK(wide[0] == "runs/a: running  step 75 of 200");
  CHECK(wide[1] == "[" + std::string(18, '#') + std::string(32, '-') + "]  37.5 %");
  CHECK(wide[2] == "loss 2.5000  held-out 3.2500  ETA 1:03  15k tokens/s  MFU 38.3%");
  CHECK(wide.back() == "Ctrl-C ends this view; the run goes on");
  CHECK(wide.size() > 15);
  for (const int columns : {24, 40, 60, 80, 132})
    for (const int rows : {3, 10, 24, 60}) {
      const auto lines =
          lines_of_screen(watch_screen(running(), some_history(), {columns, true, false}, rows));
      CHECK(static_cast<int>(lines.size()) <= rows);
      for (const std::string& line : lines) CHECK_MESSAGE(static_cast<int>(line.size()) <= columns, line);
    }
  CHECK(lines_of_screen(watch_screen(running(), some_history(), {30, true, false}, 40))[2] ==
        "loss 2.5000  held-out 3.2500");
}

TEST_CASE("watching: a run that has ended has no hint, and one without a step no curve") {
  run::RunStatus status = running();
  for (const char* state : {"finished", "interrupted", "gone", "failed: not finite"}) {
    status.state = state;
    CHECK(!may_go_on(status));
    CHECK(watch_screen(status, some_history(), {80, true, false}, 40).find("Ctrl-C") == std::string::npos);
  }
  for (const char* state : {"running", "waiting", "elsewhere"}) {
    status.state = state;
    CHECK(may_go_on(status));
  }
  run::RunStatus waiting;
  waiting.directory = "a";
  waiting.state = "waiting";
  CHECK(watch_screen(waiting, {}, {80, true, false}, 40) ==
        "a: waiting  step 0\n\nCtrl-C ends this view; the run goes on\n");
  CHECK(watch_line(running(), {}) ==
        "runs/a: running  step 75 of 200  loss 2.5000  ETA 1:03  15k tokens/s\n");
}

TEST_CASE("watching: drawing takes a twentieth of the time at most") {
  using std::chrono::milliseconds;
  Pace pace(milliseconds(1000));
  const Pace::Clock::time_point start{};
  CHECK(pace.is_due(start));
  pace.drawn(start, start + milliseconds(5));
  CHECK(!pace.is_due(start + milliseconds(1004)));
  CHECK(pace.left(start + milliseconds(5)) == milliseconds(1000));
  CHECK(pace.is_due(start + milliseconds(1005)));
  pace.drawn(start, start + milliseconds(200));
  CHECK(!pace.is_due(start + milliseconds(4199)));
  CHECK(pace.is_due(start + milliseconds(4200)));
  CHECK(pace.left(start + milliseconds(9999)).count() == 0);
}

TEST_CASE("watching: a server has three pages, and answers only those who may ask") {
  io::MemoryFileSystem fs;
  NoProgress progress;
  const Context context{fs, models::builtin_models(), {}, {}, progress};
  WatchServer here(context, "run", ""), open(context, "run", "secret");
  const http::Request health{"/health", {}, {{"host", "localhost"}}};
  CHECK(here.answer(health).body == "ok\n");
  CHECK(open.answer(health).status == 401);
  CHECK(open.answer({"/health", {{"token", "secret"}}, {}}).status == 200);
  CHECK(here.answer({"/health", {}, {{"host", "evil.example"}}}).status == 403);
  CHECK(here.answer({"/run.json", {}, {{"host", "localhost"}}}).status == 404);
  CHECK(here.answer({"/../run.json", {}, {{"host", "localhost"}}}).status == 404);
  for (const char* path : {"/", "/facts.json"}) {
    const http::Response none = here.answer({path, {}, {{"host", "localhost"}}});
    CHECK(none.status == 503);
    CHECK(none.body.find("run") != std::string::npos);
  }
}

}  // namespace
}  // namespace ostro::cli
