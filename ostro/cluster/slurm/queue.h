// SlurmJob, fate_of, SlurmQueue: the jobs of a run in Slurm's queue, by the programs sbatch, squeue and
// scancel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::cluster {

struct SlurmJob {
  std::string id;
  std::string state;   // Slurm's word, as PENDING
  std::string reason;  // why it waits, or has ended; may be empty
  std::string nodes;   // where it runs or ran; may be empty
};

enum class SlurmFate {
  kWaits,      // in the queue, also once more
  kRuns,       // has nodes, also while it ends
  kEnded,      // by itself, without an error
  kCancelled,  // by a person
  kTaken,      // Slurm took its node away: preempted, lost, or at the limit of time
  kFailed,     // ended with an error
};

// What a state's word means; an unknown one counts as kRuns, so that nothing is done about it.
SlurmFate fate_of(std::string_view state);
// Whether it waits or runs, also while it ends.
bool is_alive(const SlurmJob& job);
// Whether it runs, and is about to end by itself.
bool is_ending(const SlurmJob& job);

// The lines of squeue with kQueueFormat; lines of another form are passed over, such as warnings.
inline constexpr const char* kQueueFormat = "%i|%T|%r|%N";
std::vector<SlurmJob> parse_queue(std::string_view text);

// The job's number in what `sbatch --parsable` says; "" if there is none.
std::string parse_submission(std::string_view text);

// The names of those variables of `environment` (as `environ`) that Slurm's programs shall not see: secrets
// (OSTRO_*, AWS_*), what an outer job says of itself, and what would change the options that this launcher
// gives to sbatch, squeue and scancel.
std::vector<std::string> hidden_from_slurm(const char* const* environment);

// Jobs with one name, of this user. Every call runs a program, found on PATH. Errors: kIo, with what the
// program said.
class SlurmQueue {
 public:
  // `hidden`: variables that Slurm's programs, and so Slurm, shall not see.
  SlurmQueue(std::string name, std::vector<std::string> hidden);

  // Puts a job into the queue, and returns its number. `without`: a list of nodes to which it shall not go,
  // in the place of one in the script; "": none. `text`: the script itself, for sbatch's standard input, in
  // the place of the file `script`; "": the file.
  Result<std::string> submit(const std::string& script, const std::string& without = "",
                             const std::string& text = "") const;
  // All that Slurm still knows, those that have ended a while ago included.
  Result<std::vector<SlurmJob>> jobs() const;
  Status cancel(const std::vector<std::string>& ids) const;

 private:
  Result<std::string> run(const std::vector<std::string>& words, const std::string& input = "") const;

  std::string name_;
  std::vector<std::string> hidden_;
};

}  // namespace ostro::cluster
