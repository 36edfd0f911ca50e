// StepTask: one step as a process elsewhere is told of it, and TaskFiles: the files of the lab's folder by
// which the process that asks and the one that does the step speak. Both see the folder under the same path.
//
// jobs/F/ beside the outputs, F as in out/F, has: task.json; answer.json, at the end; stop, when it is to
// save and to end; lock, held by the process that does the step; environment, which only its user can read.
// A task is of one attempt. Who holds the lock may put another one in its place; a process that comes late
// sees that, and does nothing. Values; one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/lab/places/performed.h"
#include "ostro/lab/steps/work.h"

namespace ostro::lab {

struct StepTask {
  std::string attempt;  // drawn at random: no other one has it
  std::string plan;     // the path of its file
  bool sanity = false;
  std::string step, fingerprint;
  std::string folder;  // where its output is made
  std::string where;   // the folder in which relative paths of the two are meant
  Seeds seeds;
  std::map<std::string, Made> made;  // the steps before it
  std::vector<std::string> argv;     // of the command that asks, for run.json
  std::string version;               // of ostro, as in Services
};

struct TaskFiles {
  // Of the output `folder` of a lab. All paths are absolute.
  TaskFiles(const std::string& lab_directory, const std::string& folder);
  // Of a task's file.
  explicit TaskFiles(const std::string& task_file);

  std::string directory, task, answer, stop, lock, environment;
  std::string log;  // what the step prints, in the lab's folder logs
};

std::string new_attempt();

Status write_task(io::FileSystem& fs, const TaskFiles& files, const StepTask& task);
// Nothing: there is none. Errors: the file is damaged.
Result<std::optional<StepTask>> read_task(io::FileSystem& fs, const TaskFiles& files);

struct TaskAnswer {
  std::string attempt;  // that it is of
  Performed performed;
  std::string unsandboxed;  // why no sandbox works there; empty: one does, or the step needs none
};
Status write_answer(io::FileSystem& fs, const TaskFiles& files, const TaskAnswer& answer);
// Why no sandbox worked where the step of the present task was done; OK: one did, or it needs none.
Status sandboxed_there(io::FileSystem& fs, const TaskFiles& files);
// Nothing: there is none, or none of this attempt.
std::optional<TaskAnswer> read_answer(io::FileSystem& fs, const TaskFiles& files, const std::string& attempt);

// The lock, with the name of this process. Error: kBusy, with the name of the one that has it.
Result<std::unique_ptr<io::FileLock>> lock_task(io::FileSystem& fs, const TaskFiles& files);

}  // namespace ostro::lab
