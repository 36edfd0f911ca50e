// How far a run is: a line that is redrawn on a terminal, a log line now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "ostro/train/report/console.h"

namespace ostro::train {

// What the line shows besides the step.
struct ProgressNumbers {
  double loss = 0;
  double mfu = 0;              // 0 to 1; 0: not known, not shown
  int64_t resident_bytes = 0;  // 0: not shown
};

// For the thread of the training loop. A call that draws nothing reads a clock and no more.
class Progress {
 public:
  using Clock = std::function<std::chrono::nanoseconds()>;  // since any fixed moment

  // Steps first_step + 1 .. total_steps are still to do. Plain lines go through log_info().
  Progress(Console& console, int64_t first_step, int64_t total_steps, Clock clock = steady_clock());
  ~Progress();  // removes the line; that of the last step went to the log
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // After `step` steps, the last of which had `tokens` tokens. `numbers` is called only when the line is
  // drawn.
  void update(int64_t step, int64_t tokens, const std::function<ProgressNumbers()>& numbers);

  // Over about the last half minute of steps; the first step, with its compiling, does not count. 0 at first.
  double tokens_per_second() const;
  double steps_per_second() const;

  static Clock steady_clock();

 private:
  std::string line(const ProgressNumbers& numbers) const;

  Console& console_;
  const int64_t total_steps_;
  const Clock clock_;
  int64_t step_;
  // Steps, tokens and seconds of the window; decayed so that old ones fade.
  double window_steps_ = 0, window_tokens_ = 0, window_seconds_ = 0;
  bool has_time_ = false;
  std::chrono::nanoseconds last_update_{0}, last_draw_{0};
  bool drawn_ = false;
};

}  // namespace ostro::train
