// Reporter: the reports of a running training: progress line, log and metrics. The training thread uses it.
#pragma once

#include <memory>

#include "ostro/run/loop/run.h"
#include "ostro/run/report/console.h"
#include "ostro/run/report/engine_peak.h"
#include "ostro/run/report/forecast.h"
#include "ostro/run/report/meters.h"
#include "ostro/run/report/progress.h"
#include "ostro/run/report/tracker.h"

namespace ostro::run {

// Reports on one run. It must outlive its watcher().
class Reporter {
 public:
  // Opens the config's trackers in the run directory and measures the engine's peak FLOP/s for MFU.
  // `environment` and `console` must outlive it. Errors: those of the run's plan and of opening a tracker.
  static Result<std::unique_ptr<Reporter>> create(const train::TrainConfig& config,
                                                  const Environment& environment, const Run& run,
                                                  Console& console);
  // What the training loop calls.
  Watcher watcher();
  // Ends the progress line and the trackers. Errors: those of the trackers.
  Status finish();

 private:
  Reporter(const train::TrainConfig& config, const Environment& environment, const Run& run,
           Console& console);
  void step(const StepReport& report);
  void eval(const EvalReport& report);
  void meter(const StepReport& report);
  void log(int64_t step, const Metrics& metrics);
  // Model FLOPs utilisation, of all processes that share the step.
  double mfu(const StepReport& report);
  void refresh_page();

  train::TrainConfig config_;
  const Environment& env_;
  const std::string directory_;
  Console& console_;
  std::unique_ptr<Tracker> tracker_;
  MeterFile meters_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<Forecast> forecast_;  // until the first step is done
  double flops_per_token_ = 0;
  EnginePeak peak_;
  std::chrono::nanoseconds peak_measured_{0};
  std::chrono::nanoseconds page_begun_{0}, page_ended_{0};  // of the page's last writing; 0: none yet
  bool page_failed_ = false;
  int64_t memory_ = 0, room_ = 0;  // bytes: planned, and what can be had
  bool tracker_failed_ = false;
  bool warned_of_load_ = false;
  bool says_goodput_ = false;  // in the log: of a run on several processes, or one that costs something
  GoodputTotals last_goodput_;
};

}  // namespace ostro::run
