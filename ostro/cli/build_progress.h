// The line that shows how far a command that reads all texts is.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include "ostro/data/build.h"

namespace ostro::cli {

// On a terminal one line, redrawn at most ten times a second; elsewhere, as for the log of a batch job, a
// line of its own every 30 seconds, the first after 30.
class BuildProgressLine {
 public:
  using Clock = std::chrono::steady_clock;
  struct Output {
    std::FILE* file = stderr;
    bool is_terminal = false;
    std::function<Clock::time_point()> now = Clock::now;
  };
  static Output standard_error();

  // `name` of the component, or of what is done; empty: "tokenizing".
  explicit BuildProgressLine(std::string name = "", Output output = standard_error());
  // For BuildSettings::progress; refers to this object.
  std::function<void(const data::BuildProgress&)> callback();
  // Leaves the line standing.
  void end();

 private:
  void draw(const data::BuildProgress& p);

  std::string name_;
  Output output_;
  Clock::time_point begin_, drawn_;
  bool shown_ = false;
};

}  // namespace ostro::cli
