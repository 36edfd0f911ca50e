// RunHistory: hours of a run on hosts that fail, in virtual time: steps, epochs, recoveries, checkpoints.
//
// What a failure costs is what it costs a real run (docs/guide/clusters.md, "What each failure costs"):
// the step in progress, or the steps since the last checkpoint when cells are lost with their copies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/base/watch/time_use.h"
#include "ostro/simulate/job.h"
#include "ostro/simulate/step/step_time.h"

namespace ostro::simulate {

// One interruption: from the loss of hosts, or from the end of the step before a change, to the next step.
struct Recovery {
  double at = 0, seconds = 0;
  int64_t lost = 0;               // hosts; 0: others joined
  int64_t before = 0, after = 0;  // hosts that train
  int64_t steps_back = 0;         // to the last checkpoint; 0: the state survived
};

struct RunHistory {
  double seconds = 0;       // that were simulated
  TimesUsed uses{};         // of `seconds`, by cause (docs/reference/formats/goodput.md)
  double host_seconds = 0;  // of hosts that train
  int64_t steps = 0;        // that the run has advanced
  double longest_step = 0;  // seconds
  int64_t host_losses = 0, slice_losses = 0, joins = 0, epochs = 0, checkpoints = 0, restarts = 0;
  std::vector<Recovery> recoveries;
  ControlTraffic control;  // without heartbeats
  int64_t heartbeats = 0;  // of hosts; the coordinator answers each

  double goodput() const { return seconds > 0 ? uses[0] / seconds : 0; }
};

// Simulates options.hours. `first`: the plan of all hosts. Errors: as of plan_step, for the hosts that are
// left.
Result<RunHistory> simulate_run(const RunModel& model, runtime::Engine& engine,
                                const SimulateOptions& options, const StepPlan& first);

// The bytes that a host whose cells and copies move receives at most, when hosts come together anew.
int64_t moved_bytes(const StepPlan& plan);

}  // namespace ostro::simulate
