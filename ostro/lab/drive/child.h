// Child: a step's perform() in a process of its own, so that several steps are done side by side: each has
// its threads, its memory and its log. One thread uses it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "ostro/lab/drive/make_step.h"

namespace ostro::lab {

class Child {
 public:
  // Begins `work` in a copy of this process, in which no other thread may be at work. What it prints goes to
  // the file `log`; OSTRO_THREADS is `threads` there. The copy ends when this process does, whatever ends it.
  static Result<Child> start(const std::function<Performed()>& work, const std::string& log, int threads);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();  // ends the process, if it still runs

  // Asks it to save and end.
  void stop() const;
  // What it gave, once it has ended; else nothing, after at most `milliseconds`. `children` must not be
  // empty; the number of the first that has ended is in `ended`.
  static std::optional<Performed> wait_for_one(std::vector<Child>& children, int milliseconds, size_t& ended);

 private:
  Child(pid_t process, int pipe, std::string log) : process_(process), pipe_(pipe), log_(std::move(log)) {}
  // Reads what is there; true at the end.
  bool read_some();
  Performed result();

  pid_t process_ = 0;
  int pipe_ = -1;
  std::string log_, text_;
};

}  // namespace ostro::lab
