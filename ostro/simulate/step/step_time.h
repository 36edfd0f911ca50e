// StepTime: how long a step takes in virtual time, and what each host does meanwhile.
//
// The hosts run the phases of a step as fleet/workers does: parameters, leaves, gradients, norms, update,
// fingerprints. An exchange begins when all hosts that take part have come, and ends for all of them
// together. Hosts of one machine share its cores and its link, hosts of one slice the slice's link to others.
#pragma once

#include <array>
#include <vector>

#include "ostro/simulate/step/options.h"
#include "ostro/simulate/step/random.h"
#include "ostro/simulate/step/step_plan.h"

namespace ostro::simulate {

enum class Part { kCompute, kInside, kBetween, kInUpdate, kCommand, kWait, kUpdate, kPrint };
inline constexpr size_t kParts = 8;
inline constexpr std::array<const char*, kParts> kPartNames = {"computing",
                                                               "sending in a slice",
                                                               "sending between slices",
                                                               "sending in the update",
                                                               "commands",
                                                               "waiting for others",
                                                               "update",
                                                               "fingerprints"};

using PartTimes = std::array<double, kParts>;  // seconds

struct StepTime {
  double seconds = 0;
  PartTimes parts{};  // of a host, on average; their sum is `seconds`
  // When the leaves begin and end, and when the norm is known: from then on a lost host costs nothing.
  double leaves_begin = 0, leaves_end = 0, measured = 0;
};

// Seconds of one host that has a core alone.
struct HostSeconds {
  double leaf = 0;                // of a leaf
  double add = 0;                 // of adding two gradients of all parameters
  double update = 0, prints = 0;  // of one step's update and fingerprints
};
HostSeconds host_seconds(const RunModel& model, const StepPlan& plan, const SimulateOptions& options,
                         const HostWork& work);

// The time of a step. `speed`: by rank, a factor of the time that a host computes; empty: 1 for all. `jitter`
// draws the rest.
StepTime time_step(const RunModel& model, const StepPlan& plan, const SimulateOptions& options,
                   const std::vector<double>& speed, Random& jitter);
// The mean of some steps.
StepTime mean_step(const std::vector<StepTime>& steps);

}  // namespace ostro::simulate
