// The line that shows how far a command that reads all texts is.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "ostro/data/build.h"

namespace ostro::cli {

// One line on the terminal, redrawn at most ten times a second; nothing when standard error is none.
class BuildProgressLine {
 public:
  // `name` of the component, or of what is done; empty: "tokenizing".
  explicit BuildProgressLine(std::string name = "") : name_(std::move(name)) {}
  // For BuildSettings::progress; refers to this object.
  std::function<void(const data::BuildProgress&)> callback();
  // Leaves the line standing.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(const data::BuildProgress& p);

  std::string name_;
  Clock::time_point begin_ = Clock::now(), drawn_;
  bool shown_ = false;
};

}  // namespace ostro::cli
