// Meters: figures of a run for those that watch it, from outside its processes: of the newest step, and
// counts over the whole run. The process that leads a run keeps them in RUN/meters.json
// (docs/reference/formats/meters.md). Training does not depend on them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"

namespace ostro::run {

inline constexpr const char* kMetersFile = "meters.json";

// How many steps took at most so many seconds, how many there were, and their sum.
struct StepTimes {
  static constexpr std::array<double, 15> kLimits = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,   2.5,
                                                     5,    10,    30,   60,  300,  900, 3600};
  std::array<int64_t, kLimits.size()> at_most{};
  int64_t count = 0;
  double sum = 0;  // seconds

  void add(double seconds);
};

// Times of the clock are Unix times in seconds; 0: there was none yet.
struct Meters {
  double updated = 0;
  int64_t step = 0, total = 0;  // steps done, and the length of the run
  double ended = 0;             // when the newest step ended
  double loss = 0, gradient_norm = 0, learning_rate = 0;
  double tokens_per_second = 0;
  double step_seconds = 0, data_seconds = 0, save_seconds = 0;  // of the newest step
  double median_seconds = 0;                                    // of the last 32 steps; 0: not known
  // The longest time between the ends of two steps in a row, with evaluations and checkpoints between them.
  double longest_pause = 0;
  int64_t processes = 1;
  std::optional<double> held_out_loss;  // of the newest evaluation
  int64_t held_out_step = 0;
  StepTimes steps;  // of all sessions, steps that were done again too
  int64_t saves = 0;
  double save_bytes = 0, save_write_seconds = 0;  // of all of them
  int64_t last_save_step = 0;
  // Of all sessions, with trainer.cross_check: leaves that were computed twice, and the time of the process
  // that leads in computing again and comparing.
  int64_t checked_leaves = 0;
  double check_seconds = 0;
  double last_save = 0, last_save_bytes = 0, last_save_seconds = 0;
};

std::string meters_json(const Meters& meters);
// Reads the file. Errors: kNotFound; kCorrupt, with the field; kUnsupported for a later format.
Result<Meters> read_meters(io::FileSystem& fs, const std::string& run_directory);

// Keeps the file, for the thread that trains. When it cannot be written, one warning is logged.
class MeterFile {
 public:
  // Goes on with the counts of the file, if it is there.
  MeterFile(io::FileSystem& fs, const std::string& run_directory);

  Meters& now() { return meters_; }
  // A step has ended. Sets what follows from its times, and writes the file if a second has passed.
  void step_ended(double seconds);
  // A checkpoint was written: its step, the bytes of its arrays, and the time that this took.
  void saved(int64_t step, double bytes, double seconds);
  void write();

 private:
  io::FileSystem& fs_;
  const std::string path_;
  Meters meters_;
  std::deque<double> last_;  // seconds of the last steps
  double before_ = 0;        // when the step before ended, in this session; 0: there was none
  bool failed_ = false;
};

}  // namespace ostro::run
