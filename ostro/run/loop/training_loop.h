// TrainingLoop: does the steps of an opened run, from where its state is to the last one.
#pragma once

#include <chrono>
#include <vector>

#include "ostro/batches/loader/prefetcher.h"
#include "ostro/run/loop/chain_keeper.h"
#include "ostro/run/loop/opened_run.h"

namespace ostro::run {

// All that it is made of must outlive it. Only the training thread uses it.
class TrainingLoop {
 public:
  TrainingLoop(OpenedRun& run, const Environment& env, train::LiveState& state, ChainKeeper& keeper,
               const Watcher& watcher)
      : run_(run), env_(env), state_(state), keeper_(keeper), watcher_(watcher) {}

  // Trains to the last step, or that of env.until, or until env.stop is set or another process goes on. Then
  // the chain is complete and durable. Errors: a step without a finite loss, after which the state before it
  // is saved; and those of the state, the data and the disk.
  Result<RunOutcome> steps();

 private:
  Result<batches::Batch> next_batch(batches::Prefetcher& batches, batches::Batch memory, StepReport& report);
  // Does the step of the batch and appends its entry.
  Status step(const batches::Batch& batch, StepReport& report);
  Status write_findings();
  Error not_finite(const train::StepResult& result, const std::vector<float>& scalars);
  // `timed`: a temporary checkpoint is due.
  Status after_step(StepReport& report, bool timed);
  Status evaluate();
  void tell_of_save();
  double seconds_since(std::chrono::nanoseconds start) const;

  OpenedRun& run_;
  const Environment& env_;
  train::LiveState& state_;
  ChainKeeper& keeper_;
  const Watcher& watcher_;
  int64_t evaluations_ = 0;
};

// Ends the session in the run's record: "finished", "interrupted", "ended as asked", "failed: ...". Only the
// first end counts.
Status end_session(OpenedRun& run, io::FileSystem& fs, const std::string& outcome, int64_t step);

}  // namespace ostro::run
