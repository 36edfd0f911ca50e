// The line that shows which part of a command's work is done, and how long the rest will take.
#pragma once

#include <string>

#include "ostro/base/progress.h"
#include "ostro/cli/shared/progress_output.h"

namespace ostro::cli {

class PercentProgressLine final : public Progress {
 public:
  explicit PercentProgressLine(ProgressOutput output = ProgressOutput::standard_error());
  // `what` is named in front.
  void show(const std::string& what, double done) override;
  // Leaves the line standing.
  void end() override { output_.end(); }

 private:
  ProgressOutput output_;
  ProgressOutput::Clock::time_point begin_;
};

}  // namespace ostro::cli
