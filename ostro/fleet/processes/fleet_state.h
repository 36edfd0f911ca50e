// make_fleet_state, carried_state: the leader's view of a run's state, of which every process of a group
// holds its own cells.
#pragma once

#include <memory>
#include <optional>

#include "ostro/fleet/processes/crew.h"
#include "ostro/train/step/live_state.h"

namespace ostro::fleet {

// Makes a state whose cells the workers of `crew` hold together. `crew` must have the run, this process must
// lead in it, and it must outlive the state. When a worker is lost, the others come together again and
// continue what they were doing. After an error with crew.restarts() the state is lost, and the run must be
// opened again. One thread uses the state.
std::unique_ptr<train::LiveState> make_fleet_state(Crew& crew, const train::StateParts& parts);

// A state that the workers of a crew have already when this process becomes their leader.
struct CarriedState {
  int64_t step = 0;
  train::StepResult last;  // the result of that step; ok() only when this worker did it
};
std::optional<CarriedState> carried_state(Crew& crew);

}  // namespace ostro::fleet
