// Where a run's numbers go: metrics.jsonl, TensorBoard event files, or any other place.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"
#include "ostro/train/options/options.h"

namespace ostro::train {

// Names as in "train/loss"; a value that is not finite is kept as far as the format can.
using Metrics = std::map<std::string, double>;

// Not thread-safe. What was logged has reached the operating system when log() returns. Numbers of a run are
// no part of its identity: a caller may go on after an error.
class Tracker {
 public:
  virtual ~Tracker() = default;
  // The numbers known after `step` steps.
  virtual Status log(int64_t step, const Metrics& metrics) = 0;
  // Makes everything durable; nothing may follow.
  virtual Status finish() = 0;
};

// Hands everything to each of them, also after an error of one; gives the first error.
std::unique_ptr<Tracker> composite_tracker(std::vector<std::unique_ptr<Tracker>> trackers);

// metrics.jsonl: {"step":1,"time":1763719473.25,"train/loss":8.3} a line. What the file holds of steps after
// `restored_step`, and unfinished or unreadable lines, are dropped first.
Result<std::unique_ptr<Tracker>> json_tracker(io::FileSystem& fs, const std::string& path,
                                              int64_t restored_step);

// A new event file in `directory` (event_file.h). When the run goes on after step 0, TensorBoard is told to
// forget what older files there say of later steps.
Result<std::unique_ptr<Tracker>> tensorboard_tracker(io::FileSystem& fs, const std::string& directory,
                                                     int64_t restored_step);

// The trackers that the config names, in the run directory: metrics.jsonl, tb/.
Result<std::unique_ptr<Tracker>> make_trackers(io::FileSystem& fs, const std::string& run_directory,
                                               std::span<const TrackerOptions> options,
                                               int64_t restored_step);

}  // namespace ostro::train
