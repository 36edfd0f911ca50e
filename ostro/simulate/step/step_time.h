// StepTime: how long a step takes in virtual time, and what each host does meanwhile.
//
// The hosts run the phases of a step as fleet/workers does: parameters, leaves, gradients, norms, update,
// fingerprints. An exchange begins when all hosts that take part have come, and ends for all of them
// together; exchanges that are begun beside the leaves (StepPlan::overlaps) go one after the other, and hosts
// wait for them where workers do. Hosts of one machine share its cores and its link, hosts of one slice the
// slice's link to others.
#pragma once

#include <vector>

#include "ostro/simulate/step/random.h"
#include "ostro/simulate/step/step_actions.h"
#include "ostro/simulate/step/step_part.h"

namespace ostro::simulate {

struct StepTime {
  double seconds = 0;
  PartTimes parts{};  // of a host, on average; their sum is `seconds`
  // When the leaves begin and end, and when the norm is known: from then on a lost host costs nothing.
  double leaves_begin = 0, leaves_end = 0, measured = 0;
  double between_links = 0;  // in which links between slices carry what grows with the model
};

// The time of a step. `speed`: by rank, a factor of the time that a host computes; empty: 1 for all. `jitter`
// draws the rest.
StepTime time_step(const RunModel& model, const StepPlan& plan, const SimulateOptions& options,
                   const std::vector<double>& speed, Random& jitter);
// The mean of some steps.
StepTime mean_step(const std::vector<StepTime>& steps);

}  // namespace ostro::simulate
