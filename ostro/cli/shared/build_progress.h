// The line that shows how far a command that reads all texts is.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "ostro/cli/shared/progress_output.h"
#include "ostro/data/build/build.h"

namespace ostro::cli {

class BuildProgressLine {
 public:
  // `name` of the component, or of what is done; empty: "tokenizing".
  explicit BuildProgressLine(std::string name = "", ProgressOutput output = ProgressOutput::standard_error());
  // For BuildSettings::progress; refers to this object.
  std::function<void(const data::BuildProgress&)> callback();
  // Leaves the line standing.
  void end() { output_.end(); }

 private:
  void draw(const data::BuildProgress& p);

  std::string name_;
  ProgressOutput output_;
  ProgressOutput::Clock::time_point begin_;
};

// Of a store that a command builds where it is not there yet: OSTRO_THREADS threads, shown on `line`.
Result<data::BuildSettings> build_settings(BuildProgressLine& line);

}  // namespace ostro::cli
