// watch_screen: the picture that `ostro watch` draws in a terminal: the state of the run, its numbers and its
// loss.
#pragma once

#include <chrono>
#include <string>

#include "ostro/page/numbers/history.h"
#include "ostro/page/terminal/canvas.h"
#include "ostro/run/report/run_status.h"

namespace ostro::cli {

// Returns lines that fit the terminal's width, at most `rows` of them; the last is a hint. Before the first
// step there is no curve.
std::string watch_screen(const run::RunStatus& status, const page::History& history,
                         const page::Terminal& terminal, int rows);

// The same numbers in one line, for a log.
std::string watch_line(const run::RunStatus& status, const page::History& history);

// Parts of these. "step 12 of 30".
std::string steps_text(const run::RunStatus& status);
// Loss, ETA, speed and so on, as far as they are known.
std::string numbers_text(const run::RunStatus& status, const page::History& history);
// Losses as curves; empty before the first step.
std::string loss_plot(const page::History& history, const page::Terminal& terminal);
// The first `rows` lines of a text; with a hint the last of them is that.
std::string fitting_lines(const std::string& text, const std::string& hint, int rows);

// Returns true when the run may still do steps: it has not ended, or only another host knows whether it has.
bool may_go_on(const run::RunStatus& status);

// Decides when to draw again: drawing takes no more than a twentieth of the time, so that a run with a long
// record is not disturbed.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Pace(std::chrono::milliseconds least) : least_(least) {}
  bool is_due(Clock::time_point now) const { return !drawn_ || now >= next_; }
  void drawn(Clock::time_point begin, Clock::time_point end);
  // The time until the next drawing is due.
  std::chrono::milliseconds left(Clock::time_point now) const;

 private:
  const std::chrono::milliseconds least_;
  bool drawn_ = false;
  Clock::time_point next_;
};

}  // namespace ostro::cli
