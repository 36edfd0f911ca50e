// run_slurm_jobs: keeps a run's jobs in Slurm's queue until the run is over. It does not depend on what they
// do.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ostro/cluster/slurm/places.h"
#include "ostro/cluster/slurm/queue.h"

namespace ostro::cluster {

struct SlurmRun {
  SlurmLimits limits;
  const SlurmQueue* queue = nullptr;
  std::string script;       // the file that sbatch takes
  std::string script_text;  // what it gets on standard input in its place; "": nothing
  std::string excluded;     // nodes that the script leaves out itself, as sbatch takes them; may be ""
  std::function<std::string(const std::string&)> last_words;  // what a job wrote last; may be ""
  int if_interrupted = 75;                                    // the status of a run that was stopped
  std::function<void()> look;                                 // called about 20 times a second
  std::function<int64_t()> events;                            // grows when a worker came or went
  std::function<int64_t()> progress;                          // grows from 0 when the run makes progress
  std::function<int64_t()> members;                           // workers that are connected
  std::function<std::optional<int>()> over;                   // the run's exit status, when it has ended
  std::function<bool()> stopping;                 // whether the workers were asked to save and to end
  std::function<bool()> hurried;                  // whether nothing shall wait for them any longer
  std::function<void()> stop;                     // asks them
  std::chrono::milliseconds stop_grace{600'000};  // in which they do
};

// Returns the exit status of the run; no job of its name is left in the queue then. Looks at the queue every
// second while something changes, and every 15 seconds at last. Jobs of this name that wait or run already
// belong to the run, too. When the run stops, jobs that wait are cancelled at once, the others when their
// workers have saved, or `stop_grace` is over (status 1), or `hurried` says so. Workers of a job that runs
// are waited for also when none is connected yet: after a change of launchers they connect again. Waits until
// the queue lists no job as alive, for a minute at most; what is left then is in the log. Status 1 also when
// jobs fail again and again (SlurmPlaces); then the log has the last words of one of them. Errors: the queue
// cannot be read at the start, or Slurm takes fewer jobs than the run needs.
Result<int> run_slurm_jobs(const SlurmRun& run);

}  // namespace ostro::cluster
