// What is logged, for tests.
#pragma once

#include <string>

#include "ostro/base/log.h"

namespace ostro {

// Lines logged while it lives, instead of on the terminal.
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
