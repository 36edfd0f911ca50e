// SlurmPlaces: which jobs a run should have in Slurm's queue. It decides, and calls nothing; its owner
// submits and cancels.
//
// A run has `count` places, each for one job. A job whose node Slurm took away, or whose workers have left,
// is replaced at once. One that failed is replaced after a rest, which doubles with each failure in a row.
// One that a person cancelled is not replaced. One that the queue does not list for a while after it was
// submitted counts as failed, and is to be cancelled; when the queue has listed none at all, the run is given
// up. A node on which jobs fail in a row is left out by the next jobs for a while. One that waits and still
// leaves out a node that is to be tried again is cancelled, and another takes its place. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/cluster/slurm/left_out_nodes.h"
#include "ostro/cluster/slurm/queue.h"

namespace ostro::cluster {

struct SlurmLimits {
  int64_t least = 1, count = 1;  // jobs
  std::chrono::milliseconds rest{5'000}, most_rest{300'000};
  // The most replacements in a row, divided by `count`, while the run makes no progress.
  int64_t replacements_without_progress = 5;
  // LeftOutNodes.
  int64_t left_out_after = 0;
  std::chrono::milliseconds left_out_for{600'000};
};

class SlurmPlaces {
 public:
  using Clock = std::chrono::steady_clock;

  explicit SlurmPlaces(const SlurmLimits& limits);

  // Takes jobs of an earlier launcher that wait or run into free places. Returns those for which there is
  // none. Jobs that are ending already are left alone.
  std::vector<std::string> adopt(const std::vector<SlurmJob>& queue, Clock::time_point now);
  // Compares the places with the queue. `progress` grows when the run does. Returns what has changed, as
  // lines for the log. A job that the queue has forgotten counts as one that was taken away. Jobs of the
  // queue that no place has, since sbatch did not tell their numbers, take free places.
  std::vector<std::string> look(const std::vector<SlurmJob>& queue, int64_t progress, Clock::time_point now);
  // The places that want a job now.
  std::vector<size_t> due(Clock::time_point now) const;
  // The nodes that a job of now shall not go to.
  std::vector<std::string> left_out(Clock::time_point now) const { return nodes_.names(now); }
  // A job was submitted for this place, that leaves out these nodes.
  void submitted(size_t place, const std::string& id, std::vector<std::string> without = {});
  // Slurm refused a job for this place; another is tried after the longest rest.
  void refused(size_t place, Clock::time_point now);

  // Jobs that wait or run.
  std::vector<std::string> waiting() const, alive() const;
  // Whether one of them runs.
  bool any_runs() const;
  // The jobs that were given up because the queue did not list them, or that leave out what is to be tried
  // again, since the last call.
  std::vector<std::string> take_given_up();
  // The last job that failed; "": none.
  const std::string& failed_job() const { return failed_job_; }
  // Why the run cannot go on; nothing: it can. After look().
  const std::optional<std::string>& hopeless() const { return hopeless_; }
  // Whether a person cancelled so many jobs that the run cannot go on.
  bool too_few() const;

 private:
  struct Place {
    std::string job;  // "": none
    std::string state, nodes;
    std::string told_reason;           // why it waits, as was logged
    std::vector<std::string> without;  // nodes that the job leaves out
    int failures = 0;                  // in a row
    bool cancelled = false;
    std::optional<Clock::time_point> runs_since, again;
    std::optional<Clock::time_point> missed;  // since when the queue has not listed the job, if it never did
  };

  void look_at(Place& place, const std::vector<SlurmJob>& queue, Clock::time_point now,
               std::vector<std::string>& lines);
  void missed(Place& place, Clock::time_point now, std::vector<std::string>& lines);
  void adopt_unknown(const std::vector<SlurmJob>& queue, Clock::time_point now,
                     std::vector<std::string>& lines);
  static void take(Place& place, const SlurmJob& job, Clock::time_point now);
  void ended(Place& place, const SlurmJob& job, SlurmFate fate, Clock::time_point now,
             std::vector<std::string>& lines);
  void failed(Place& place, Clock::time_point now);
  void try_again(Clock::time_point now, std::vector<std::string>& lines);

  SlurmLimits limits_;
  LeftOutNodes nodes_;
  std::vector<Place> places_;
  std::string failed_job_;
  std::vector<std::string> given_up_;
  bool listed_ = false;  // whether the queue ever listed a job of these places
  std::optional<std::string> hopeless_;
  int64_t progress_ = 0, replaced_ = 0;  // replaced since there was progress
};

}  // namespace ostro::cluster
