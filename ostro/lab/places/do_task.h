// do_task: does the step of a task, in a process that `ostro lab run` has started elsewhere
// (`ostro lab step`).
#pragma once

#include <atomic>
#include <cstdint>

#include "ostro/lab/places/task.h"

namespace ostro::lab {

// The wish that a step save and end, as a file that is looked for once a second. Any thread may ask. It is a
// part of the context.stop of the caller of do_task(), since trainings have a context of their own.
class StopFile {
 public:
  StopFile(io::FileSystem& fs, std::string path) : fs_(fs), path_(std::move(path)) {}
  bool is_there();

 private:
  io::FileSystem& fs_;
  std::string path_;
  std::atomic<int64_t> looked_ = INT64_MIN / 2;  // ms
  std::atomic<bool> there_ = false;
};

// Takes the task's lock, does the step until context.stop says so, and writes the answer.
// A step that fails is an answer, too. Errors, without an answer: another process does the step, or another
// attempt has taken the place of this one; the answer cannot be written.
Status do_task(const Context& context, const Services& services, const TaskFiles& files,
               const StepTask& task);

}  // namespace ostro::lab
