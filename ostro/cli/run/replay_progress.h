// ReplayProgress: shows on standard error how long a replay takes.
//
// begin() prints an estimate from the time that the run's sessions took (run.json). After that, on a
// terminal, a line shows the steps that were replayed and the time left. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::cli {

class ReplayProgress {
 public:
  // `run` is the run's directory. `terminal`: standard error is a terminal.
  ReplayProgress(io::FileSystem& fs, const std::string& run, bool terminal);

  void begin(int64_t first, int64_t last) const;
  void operator()(int64_t step, int64_t first, int64_t last);
  // For a sampled audit: `done` of `all` steps of its plan are replayed.
  void count(int64_t done, int64_t all);

 private:
  using Clock = std::chrono::steady_clock;
  const bool terminal_;
  const char* what_ = "of";
  double recorded_ = 0;  // seconds a step; 0: not known
  Clock::time_point begin_, shown_;
};

}  // namespace ostro::cli
