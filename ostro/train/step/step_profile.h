// `ostro train --profile steps=10:13`: a trace of some steps of a run, as a file in the run directory for
// https://ui.perfetto.dev, chrome://tracing or any reader of the trace event format (docs/profiling.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/base/profile.h"
#include "ostro/io/files/file_system.h"

namespace ostro::train {

// Steps begin to end - 1, counted as `ostro data batch --step` does: step 0 is a run's first.
struct StepRange {
  int64_t begin = 0, end = 0;
  bool operator==(const StepRange&) const = default;
};

// "steps=10:13". ErrorCode::kInvalidArgument says what is wrong.
Result<StepRange> parse_profile(const std::string& text);
// Error: the run has fewer steps.
Status check_profile(const StepRange& range, int64_t steps);

// Starts the profile before the range's first step that this process does, and writes the file behind the
// last one. Profiling cannot fail a run: what goes wrong is logged. Not thread-safe; refers to `fs`.
class StepProfile {
 public:
  StepProfile(io::FileSystem& fs, std::string directory, std::optional<StepRange> range);
  // Writes what there is of a run that ended early.
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  // Before a step, and with the number of steps when they are all done.
  void reach(int64_t step);
  // What the step's span is called; empty when it is not profiled.
  std::string span_name(int64_t step) const;

 private:
  void write();

  io::FileSystem& fs_;
  std::string directory_;
  std::optional<StepRange> range_;
  bool on_ = false;
};

}  // namespace ostro::train
