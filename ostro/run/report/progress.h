// Progress of a run: a line that is redrawn on a terminal, or a log line from time to time elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "ostro/run/report/console.h"

namespace ostro::run {

// Returns `value`; a NaN without its sign, which has no meaning, so that it is printed as "nan", not as
// "-nan".
double without_nan_sign(double value);

// Values that the line shows besides the step.
struct ProgressNumbers {
  double loss = 0;
  double mfu = 0;              // 0 to 1; 0: not known, so not shown
  int64_t resident_bytes = 0;  // 0: not shown
  double goodput = 0;          // 0 to 1; 0: not shown
};

// Used by the thread of the training loop only. A call that draws nothing only reads the clock.
class Progress {
 public:
  using Clock = std::function<std::chrono::nanoseconds()>;  // time since any fixed moment

  // Steps first_step + 1 to total_steps are still to do. Off a terminal, and for the last step, lines go
  // through log_info().
  Progress(Console& console, int64_t first_step, int64_t total_steps, Clock clock = steady_clock());
  ~Progress();  // removes the status line; the last step's line is already in the log
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Call it after step number `step`, which had `tokens` tokens. `numbers` is called only when the line is
  // drawn.
  void update(int64_t step, int64_t tokens, const std::function<ProgressNumbers()>& numbers);

  // Speed over about the last half minute of steps. The first step does not count, as it includes
  // compilation. 0 before the second step.
  double tokens_per_second() const;
  double steps_per_second() const;

  static Clock steady_clock();

 private:
  std::string line(const ProgressNumbers& numbers) const;

  Console& console_;
  const int64_t total_steps_;
  const Clock clock_;
  int64_t step_;
  // Exponentially decaying sums of steps, tokens and seconds.
  double window_steps_ = 0, window_tokens_ = 0, window_seconds_ = 0;
  bool has_time_ = false;
  std::chrono::nanoseconds last_update_{0}, last_draw_{0};
  bool drawn_ = false;
};

}  // namespace ostro::run
