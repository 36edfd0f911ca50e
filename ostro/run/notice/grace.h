// grace_fit: whether a run can end its step and save within trainer.notice_grace, for `ostro train
// --dry_run`.
#pragma once

#include <optional>
#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/train/options/config.h"

namespace ostro::run {

// How fast checkpoints of a run are written.
struct SaveRate {
  double bytes_per_second = 0;
  std::string source;  // "stated", "of its last checkpoint", "measured in runs"
};

// The rate: `stated` if there is one; else that of the last checkpoint of the run that is in the directory;
// else what a file of 32 MiB in trainer.log_dir, or in its nearest parent, comes to. Nothing stays there.
// Errors: those of writing.
Result<SaveRate> save_rate(io::FileSystem& fs, const train::TrainConfig& config,
                           std::optional<double> stated);

struct GraceFit {
  std::string text;  // a line for people
  Status fits;       // kInvalidArgument when it does not fit
};
// `step_seconds`: of a step, which ends first; 0: not known. `bytes`: of a checkpoint's arrays.
GraceFit grace_fit(double grace_seconds, double step_seconds, double bytes, const SaveRate& rate);

}  // namespace ostro::run
