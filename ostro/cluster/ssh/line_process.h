// LineProcess: a program that is asked by lines on its standard input and answers by lines on its standard
// output, such as ostro on another machine behind ssh. What it writes to standard error is kept. One thread
// uses it. The process must ignore SIGPIPE, as cli_main makes it: the program may end at any time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/cluster/wire/socket.h"

namespace ostro::cluster {

class LineProcess {
 public:
  // How long a program may take none of the bytes that it is sent.
  static constexpr std::chrono::seconds kTakesNothing{60};

  // Starts words[0], found on PATH. Error: kIo, when no process can be made.
  static Result<LineProcess> start(const std::vector<std::string>& words);
  // Closes its input, and ends it when it does not end by itself within a second.
  ~LineProcess();
  LineProcess(LineProcess&& other) noexcept { *this = std::move(other); }
  LineProcess& operator=(LineProcess&& other) noexcept;

  // Writes a line; it must not have a line feed. Errors: those of send.
  Status ask(const std::string& line);
  // Writes bytes, and waits until the program takes them. Errors: kIo, when the program has ended, or has
  // taken nothing for `patience`; kBusy, when `stop` says true meanwhile.
  Status send(std::string_view bytes, const std::function<bool()>& stop = {},
              std::chrono::milliseconds patience = kTakesNothing);
  // Nothing more is written.
  void end_input() { in_.close(); }
  // The next line of the program. Errors: kIo, with what the program wrote to standard error, when it has
  // ended, the time is over, `stop` says true, or a line has more than 1 MiB.
  Result<std::string> answer(std::chrono::milliseconds patience, const std::function<bool()>& stop);

 private:
  LineProcess() = default;
  // Takes what has come to standard output and standard error; false at the end of standard output.
  bool read(Clock::time_point until);
  // Waits a moment for what a program that has ended wrote to standard error.
  void hear_out();
  Error gone(const std::string& what) const;

  pid_t process_ = -1;
  Socket in_, out_, errors_;
  std::string lines_, said_;
};

}  // namespace ostro::cluster
