// LogCapture: collects log lines in a test.
#pragma once

#include <string>

#include "ostro/base/log.h"

namespace ostro {

// Replaces the log sink from construction to destruction and appends every line to `lines`. Read `lines` when
// no other thread logs.
class LogCapture {
 public:
  LogCapture()
      : before_(
            set_log_sink([this](LogLevel, std::string_view line) { lines += std::string(line) + "\n"; })) {}
  ~LogCapture() { set_log_sink(before_); }
  std::string lines;

 private:
  LogSink before_;
};

}  // namespace ostro
