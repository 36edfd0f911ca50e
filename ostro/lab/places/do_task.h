// do_task: does the step of a task, in a process that `ostro lab run` has started elsewhere
// (`ostro lab step`).
#pragma once

#include "ostro/lab/places/task.h"

namespace ostro::lab {

// Takes the task's lock, does the step until context.stop or the file `stop` says so, and writes the answer.
// A step that fails is an answer, too. Errors, without an answer: another process does the step, or another
// attempt has taken the place of this one; the answer cannot be written.
Status do_task(const Context& context, const Services& services, const TaskFiles& files,
               const StepTask& task);

}  // namespace ostro::lab
