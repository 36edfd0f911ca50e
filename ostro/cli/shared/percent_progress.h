// The line that shows which part of a command's work is done, and how long the rest will take.
#pragma once

#include <string>

#include "ostro/cli/shared/progress_output.h"

namespace ostro::cli {

class PercentProgressLine {
 public:
  explicit PercentProgressLine(ProgressOutput output = ProgressOutput::standard_error());
  // `done` from 0 to 1; `what` is named in front.
  void draw(const std::string& what, double done);
  // Leaves the line standing.
  void end() { output_.end(); }

 private:
  ProgressOutput output_;
  ProgressOutput::Clock::time_point begin_;
};

}  // namespace ostro::cli
