// The progress line of commands that read all texts.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "ostro/cli/shared/progress_output.h"
#include "ostro/data/build/build.h"

namespace ostro::cli {

class BuildProgressLine {
 public:
  // `name` of the component or of the work; empty: "tokenizing".
  explicit BuildProgressLine(std::string name = "", ProgressOutput output = ProgressOutput::standard_error());
  // For BuildSettings::progress; refers to this object.
  std::function<void(const data::BuildProgress&)> callback();
  // Ends the line; it stays on the screen.
  void end() { output_.end(); }

 private:
  void draw(const data::BuildProgress& p);

  std::string name_;
  ProgressOutput output_;
  ProgressOutput::Clock::time_point begin_;
};

// Settings for a command that builds a missing store: OSTRO_THREADS threads, progress on `line`.
Result<data::BuildSettings> build_settings(BuildProgressLine& line);

}  // namespace ostro::cli
