// StepActions: what a host does in a step, one thing after another, in the order of fleet/workers. All hosts
// do the same; how long they compute depends on their leaves. A value.
#pragma once

#include <functional>
#include <vector>

#include "ostro/simulate/step/options.h"
#include "ostro/simulate/step/step_part.h"
#include "ostro/simulate/step/step_plan.h"

namespace ostro::simulate {

// Seconds of one host that has a core alone.
struct HostSeconds {
  double leaf = 0;                // of a leaf
  double add = 0;                 // of adding two gradients of all parameters
  double update = 0, prints = 0;  // of one step's update and fingerprints
};
HostSeconds host_seconds(const RunModel& model, const StepPlan& plan, const SimulateOptions& options,
                         const HostWork& work);

// An exchange of all hosts, or of those of each slice.
struct Exchange {
  enum class Level { kInside, kBetween, kBoth };
  Part part = Part::kCommand;                   // what it counts as for a host that waits for it
  bool whole = true;                            // the group: all hosts, or those of a slice
  const Traffic HostWork::* traffic = nullptr;  // what is sent; null: one word
  Level level = Level::kBoth;                   // which bytes of it
  double share = 1;                             // of these bytes
  size_t flow = 0;                              // exchanges that differ in `share` alone have the same number
};

struct Action {
  enum class Kind { kCompute, kBegin, kWait };
  Kind kind = Kind::kCompute;
  size_t exchange = 0;                          // that is begun, or waited for
  Part part = Part::kCompute;                   // of computing
  std::function<double(int64_t rank)> seconds;  // of computing
};

struct StepActions {
  std::vector<Exchange> exchanges;
  std::vector<Action> actions;
  size_t first_leaf = 0, last_leaf = 0;  // the actions in which leaves begin and end
  size_t measured = 0;                   // the exchange after which the norm is known
};

// `seconds`: by kind of host. `checked`: by rank, the leaves of others that a host computes again. All three
// must outlive the result.
StepActions step_actions(const StepPlan& plan, const std::vector<HostSeconds>& seconds,
                         const std::vector<int64_t>& checked);

}  // namespace ostro::simulate
