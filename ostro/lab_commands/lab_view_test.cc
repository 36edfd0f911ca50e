// A lab in a terminal: what runs, and what is left out where there are too many steps.
#include "ostro/lab_commands/lab_view.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

namespace ostro::cli {
namespace {

// Trainings of which the first are done, one runs, and the rest wait.
struct MadeLab {
  lab::Plan plan;
  lab::LiveLab live;

  MadeLab(size_t done, size_t waiting) {
    plan.name = "small";
    plan.question = "Which one?";
    for (size_t i = 0; i < done + 1 + waiting; ++i)
      plan.steps.push_back({.name = "run-" + std::to_string(i), .kind = lab::find_kind("train")});
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      lab::StepState state{.step = &plan.steps[i]};
      state.action = i < done ? lab::Action::kSkip : i == done ? lab::Action::kResume : lab::Action::kWait;
      state.reason = i > done ? "needs rows, which\nis not done" : "was begun";
      live.state.steps.push_back(state);
    }
    live.driver = "process 7 of here";
    lab::BegunStep begun{.step = plan.steps[done].name, .folder = "f", .is_at_work = true};
    begun.run = run::RunStatus{};
    begun.run->step = 12, begun.run->total = 30, begun.run->loss = 4.25, begun.run->eta_seconds = 65;
    live.begun.push_back(begun);
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

bool has(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST_CASE("the picture has what runs, and fits; where there are many steps those that are done go first") {
  const MadeLab lab(3, 2);
  auto lines = lines_of(lab_screen(lab.plan, lab.live, {}, {.columns = 100}, 24));
  CHECK(lines[0] == "small: 3 of 6 steps done; process 7 of here works on it");
  CHECK(has(lines, "done     run-0"));
  CHECK(has(lines, "running  run-3: step 12 of 30  loss 4.2500  ETA 1:05"));
  CHECK(has(lines, "wait     run-4: needs rows, which is not done"));
  CHECK(lines.back() == "Ctrl-C ends this view; the lab goes on");
  const MadeLab many(40, 40);
  lines = lines_of(lab_screen(many.plan, many.live, {}, {.columns = 40}, 10));
  CHECK(lines.size() <= 10);
  CHECK_FALSE(has(lines, "run-0"));
  CHECK(has(lines, "running  run-40"));
  CHECK(has(lines, "more"));
  for (const std::string& line : lines) CHECK(line.size() <= 40);
}

TEST_CASE("the line of a log says the same, and progress is another number when a step was done") {
  MadeLab lab(1, 0);
  CHECK(lab_line(lab.plan, lab.live, {}) ==
        "small: 1 of 2 steps done; process 7 of here works on it; run-1: step 12 of 30  loss 4.2500  ETA "
        "1:05\n");
  const int64_t before = lab_progress(lab.live);
  ++lab.live.begun[0].run->step;
  CHECK(lab_progress(lab.live) != before);
  lab.live.driver.clear();
  lab.live.begun.clear();
  CHECK(lab_line(lab.plan, lab.live, {}) == "small: 1 of 2 steps done; nobody works on it here\n");
}

}  // namespace
}  // namespace ostro::cli
