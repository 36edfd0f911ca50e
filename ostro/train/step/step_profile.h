// StepProfile: `ostro train --profile steps=10:13`, which writes a trace of some steps into the run
// directory; workers of a run on several processes write one each. https://ui.perfetto.dev, chrome://tracing
// and other readers of the trace event format can open it (docs/inside/profiling.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/base/profile.h"
#include "ostro/io/files/file_system.h"

namespace ostro::train {

// The steps [begin, end). Step 0 is the first of a run, as in `ostro data batch --step`.
struct StepRange {
  int64_t begin = 0, end = 0;
  bool operator==(const StepRange&) const = default;
};

// Parses "steps=10:13". Error: kInvalidArgument, with what is wrong.
Result<StepRange> parse_profile(const std::string& text);
// Error: the run has fewer steps.
Status check_profile(const StepRange& range, int64_t steps);

// Starts the profile before the first step of the range that this process runs. Writes the file after the
// last one. Profiling never stops a run: errors are only logged. Not thread-safe; `fs` must outlive it.
class StepProfile {
 public:
  StepProfile(io::FileSystem& fs, std::string directory, std::optional<StepRange> range);
  // Writes what was recorded if the run ended early.
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  // A worker that does not lead the run writes a file with its rank in the name.
  void set_rank(int64_t rank) { rank_ = rank; }
  // Call it before each step with the step's number, and after the last step with the number of steps.
  void reach(int64_t step);
  // Call it after a step when the next one may never come: writes the file if this was its last step.
  void leave(int64_t step);
  // The name of the step's span. Empty if the step is not profiled.
  std::string span_name(int64_t step) const;

 private:
  void write();

  io::FileSystem& fs_;
  std::string directory_;
  std::optional<StepRange> range_;
  std::optional<int64_t> rank_;
  bool on_ = false;
};

}  // namespace ostro::train
