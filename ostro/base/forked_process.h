// ForkedProcess: work in a copy of this process, whose answer is a text. It is a process group of its own, so
// that it ends with all that it started. One thread uses it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "ostro/base/error.h"

namespace ostro {

class ForkedProcess {
 public:
  // Begins `work` in a copy of this process, in which no other thread may be at work. Its text is the answer.
  // The copy ends when this process does, whatever ends it. Errors: no process, or no pipe, can be had.
  static Result<ForkedProcess> start(const std::function<std::string()>& work);
  ForkedProcess(ForkedProcess&& other) noexcept;
  ForkedProcess& operator=(ForkedProcess&& other) noexcept;
  ~ForkedProcess();  // ends the group, if the process still runs

  // Sends a signal to the group.
  void signal(int number) const;
  // Where its answer comes from, to wait for (poll).
  int descriptor() const { return pipe_; }
  // Reads what is there, or waits for more; true at the end of the answer.
  bool read_some();

  struct End {
    std::string answer;
    int status = 0;  // as waitpid() gives it
  };
  // What it answered and how it ended, after the end of the answer. What it started is ended, too.
  End end();
  // The same, at most `limit` from now. Nothing: it took longer; then the group was killed.
  std::optional<End> wait_for(std::chrono::milliseconds limit);

 private:
  ForkedProcess(pid_t process, int pipe) : process_(process), pipe_(pipe) {}
  // Ends the group, and takes the status of the process.
  int end_group();

  pid_t process_ = 0;
  int pipe_ = -1;
  std::string answer_;
};

}  // namespace ostro
