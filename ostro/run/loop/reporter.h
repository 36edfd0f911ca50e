// Reports of a running training: progress line, log and metrics.
#pragma once

#include <memory>

#include "ostro/run/loop/run.h"
#include "ostro/run/report/console.h"
#include "ostro/run/report/progress.h"
#include "ostro/run/report/tracker.h"

namespace ostro::run {

// Reports on one run. It must outlive its watcher().
class Reporter {
 public:
  // Opens the config's trackers in the run directory and measures the engine's peak FLOP/s for MFU.
  static Result<std::unique_ptr<Reporter>> create(const train::TrainConfig& config,
                                                  const Environment& environment, const Run& run,
                                                  Console& console);
  Watcher watcher();
  Status finish();

 private:
  Reporter(const train::TrainConfig& config, Console& console) : config_(config), console_(console) {}
  void step(const StepReport& report);
  void eval(const EvalReport& report);
  void log(int64_t step, const Metrics& metrics);

  train::TrainConfig config_;
  Console& console_;
  std::unique_ptr<Tracker> tracker_;
  std::unique_ptr<Progress> progress_;
  double flops_per_token_ = 0, peak_flops_ = 0;
  bool tracker_failed_ = false;
  bool warned_of_load_ = false;
  bool says_goodput_ = false;  // in the log: of a run on several processes, or one that costs something
  GoodputTotals last_goodput_;
};

// FLOP/s of the engine in a square matrix product of `dtype`. 0 for an engine that is not made to be fast
// (the interpreter).
double engine_peak(runtime::Engine& engine, DType dtype);

}  // namespace ostro::run
