// Child: a step's perform() in a process of its own, so that several steps are done side by side: each has
// its threads, its memory and its log. It ends with the Child, if it still runs. One thread uses it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/base/forked_process.h"
#include "ostro/lab/drive/make_step.h"

namespace ostro::lab {

class Child {
 public:
  // Begins `work` in a copy of this process, in which no other thread may be at work. What it prints goes to
  // the file `log`; OSTRO_THREADS is `threads` there. The copy ends when this process does, whatever ends it.
  static Result<Child> start(const std::function<Performed()>& work, const std::string& log, LogBegin begin,
                             int threads);

  // Asks it to save and end.
  void stop() const;
  // What it gave, once it has ended; else nothing, after at most `milliseconds`. `children` must not be
  // empty; the number of the first that has ended is in `ended`.
  static std::optional<Performed> wait_for_one(std::vector<Child>& children, int milliseconds, size_t& ended);

 private:
  Child(ForkedProcess process, std::string log) : process_(std::move(process)), log_(std::move(log)) {}
  Performed result();

  ForkedProcess process_;
  std::string log_;
};

}  // namespace ostro::lab
