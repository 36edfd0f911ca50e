// Prints the progress lines of long commands at a limited rate.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

namespace ostro::cli {

// On a terminal it is one line, redrawn at most ten times a second. Elsewhere, as in the log of a batch job,
// it is a new line every 30 seconds, the first after 30 seconds.
class ProgressOutput {
 public:
  using Clock = std::chrono::steady_clock;

  static ProgressOutput standard_error();
  ProgressOutput(std::FILE* file, bool is_terminal, std::function<Clock::time_point()> now);

  Clock::time_point now() const { return now_(); }
  // Whether a line should be printed now. `last`: this is the last one, which a terminal always shows.
  bool is_due(bool last);
  void show(const std::string& line);
  // Ends the line; it stays on the screen.
  void end();

 private:
  std::FILE* file_;
  bool is_terminal_;
  std::function<Clock::time_point()> now_;
  Clock::time_point drawn_;
  size_t shown_ = 0;  // number of characters in the current line
};

}  // namespace ostro::cli
