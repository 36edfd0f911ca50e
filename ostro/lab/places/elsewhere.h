// do_elsewhere: has a step done by a process that a cluster places somewhere, and waits for its answer.
#pragma once

#include <functional>
#include <string>

#include "ostro/lab/places/task.h"

namespace ostro::lab {

// How an attempt has ended. What the step gave is in the answer, if there is one.
struct AttemptEnd {
  enum class How {
    kEnded,      // by itself: with an answer, or else with an error or a crash
    kTaken,      // the cluster took its place away, or lost it
    kCancelled,  // by a person, or because it was no longer wanted
  } how = How::kEnded;
  std::string words;  // what is known of it, for people
};

// What a cluster does. One thread at a time; copies of the process use copies.
class Cluster {
 public:
  virtual ~Cluster() = default;
  // Whether a process for these files is waiting or at work, which an earlier driver has begun.
  virtual Result<bool> has(const TaskFiles& files) const = 0;
  // Ends processes for these files that are waiting. Clusters whose processes end with their driver have
  // none.
  virtual Status cancel_waiting(const TaskFiles&) const { return {}; }
  // Begins a process that runs `ostro lab step` for the task, unless has() says that there is one, and waits
  // for its end. When `stop` says so, the process is to end: if `saves`, the file files.stop tells it, and it
  // is waited for; else it is ended. Errors: no process can be had.
  virtual Result<AttemptEnd> attempt(const TaskFiles& files, bool saves,
                                     const std::function<bool()>& stop) const = 0;
};

// The same step: an attempt that was lost is begun again, up to a limit. `begin` makes the folder ready for
// an attempt, and is called while no other process works there; with true behind an attempt of this driver or
// of another one, whose work is to be kept. What an earlier driver has begun, or has the answer of, is taken
// over, if the output is there. Errors: those of the step, of the cluster, or that no attempt came to an end.
Performed do_elsewhere(io::FileSystem& fs, const Cluster& cluster, const TaskFiles& files, StepTask task,
                       bool saves, const std::function<Status(bool)>& begin,
                       const std::function<bool()>& stop);

// Removes the answer of a step whose output is not taken, so that the next driver does the step again. Files
// that people may want to read stay. Nothing happens where there is no answer.
Status discard_answer(io::FileSystem& fs, const TaskFiles& files);

// For a step that is to be done here: what an attempt elsewhere, of a driver that was killed, has given;
// nothing where there is none, and then its files are removed. After that no such attempt begins any more.
// Error: one is at work.
Result<std::optional<Performed>> left_elsewhere(io::FileSystem& fs, const TaskFiles& files,
                                                const StepTask& task);

}  // namespace ostro::lab
