// ReplayProgress: says on standard error how long a replay takes.
//
// Beforehand from what the run's sessions took (run.json), then from the steps that were replayed. On a
// terminal a line that is rewritten, elsewhere only the estimate. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::cli {

class ReplayProgress {
 public:
  // `run`: the run's directory. With `terminal` standard error is one.
  ReplayProgress(io::FileSystem& fs, const std::string& run, bool terminal);

  void begin(int64_t first, int64_t last) const;
  void operator()(int64_t step, int64_t first, int64_t last);
  // Of a sampled audit: so many of the steps that are to be replayed are done.
  void count(int64_t done, int64_t all);

 private:
  using Clock = std::chrono::steady_clock;
  const bool terminal_;
  const char* what_ = "of";
  double recorded_ = 0;  // seconds a step; 0: not known
  Clock::time_point begin_, shown_;
};

}  // namespace ostro::cli
