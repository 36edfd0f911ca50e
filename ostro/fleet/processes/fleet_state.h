// Fleet state: the state of a run of which every process of a group holds its own cells; the leader's part.
#pragma once

#include <memory>
#include <optional>

#include "ostro/fleet/processes/crew.h"
#include "ostro/train/step/live_state.h"

namespace ostro::fleet {

// A state that is held together with the other workers of `crew`, which has the run and in which this process
// leads. When a worker is lost, the others come together again and go on with what they were doing. An error
// while crew.restarts() says that the state is lost: the run must be opened again. `crew` must outlive the
// state.
std::unique_ptr<train::LiveState> make_fleet_state(Crew& crew, const train::StateParts& parts);

// A state that the workers of a crew have already, when this process comes to lead them.
struct CarriedState {
  int64_t step = 0;
  train::StepResult last;  // of that step; ok() only where this worker did it
};
std::optional<CarriedState> carried_state(Crew& crew);

}  // namespace ostro::fleet
