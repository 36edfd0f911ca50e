// Tracker: writes the metrics of a run to metrics.jsonl, to TensorBoard event files, or to Weights & Biases.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"
#include "ostro/train/options/options.h"

namespace ostro::run {

// Metrics by name, for example "train/loss". A value that is not finite is written if the format allows it.
using Metrics = std::map<std::string, double>;

// Not thread-safe. When log() returns, its data has reached the operating system. Metrics do not identify a
// run, so a caller may continue after an error.
class Tracker {
 public:
  virtual ~Tracker() = default;
  // Records the metrics after `step` steps.
  virtual Status log(int64_t step, const Metrics& metrics) = 0;
  // Makes all data durable. No call may follow.
  virtual Status finish() = 0;
};

// A tracker that passes every call to all of these, even after one of them fails. Returns the first error.
std::unique_ptr<Tracker> composite_tracker(std::vector<std::unique_ptr<Tracker>> trackers);

// Writes metrics.jsonl, one line per step: {"step":1,"time":1763719473.25,"train/loss":8.3}. First it removes
// from the file the lines of steps after `restored_step`, and lines that are incomplete or unreadable.
Result<std::unique_ptr<Tracker>> json_tracker(io::FileSystem& fs, const std::string& path,
                                              int64_t restored_step);

// Writes a new event file in `directory` (event_file.h). If the run resumes after step 0, it tells
// TensorBoard to drop what older files say about later steps.
Result<std::unique_ptr<Tracker>> tensorboard_tracker(io::FileSystem& fs, const std::string& directory,
                                                     int64_t restored_step);

// All trackers that the config names. They write into the run directory: metrics.jsonl, tb/, wandb/.
Result<std::unique_ptr<Tracker>> make_trackers(io::FileSystem& fs, const std::string& run_directory,
                                               std::span<const train::TrackerOptions> options,
                                               int64_t restored_step);

}  // namespace ostro::run
