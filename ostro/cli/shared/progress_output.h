// Where lines about the progress of long commands go, and how often.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

namespace ostro::cli {

// On a terminal one line, redrawn at most ten times a second; elsewhere, as for the log of a batch job, a
// line of its own every 30 seconds, the first after 30.
class ProgressOutput {
 public:
  using Clock = std::chrono::steady_clock;

  static ProgressOutput standard_error();
  ProgressOutput(std::FILE* file, bool is_terminal, std::function<Clock::time_point()> now);

  Clock::time_point now() const { return now_(); }
  // Whether it is time for another line; `last`: it is the last one, which a terminal shows always.
  bool is_due(bool last);
  void show(const std::string& line);
  // Leaves the line standing.
  void end();

 private:
  std::FILE* file_;
  bool is_terminal_;
  std::function<Clock::time_point()> now_;
  Clock::time_point drawn_;
  size_t shown_ = 0;  // characters of the line that stands
};

}  // namespace ostro::cli
