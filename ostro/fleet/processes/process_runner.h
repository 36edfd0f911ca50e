// Training steps on several processes: the leader's part.
#pragma once

#include <memory>

#include "ostro/fleet/processes/crew.h"
#include "ostro/train/step/step.h"

namespace ostro::fleet {

// A runner whose steps are done together with the other workers of `crew`, which has the run and in which
// this process leads. When a worker is lost, the others come together again and go on with the step. An error
// while crew.restarts() says that the state is lost: the run must be opened again. `crew` must outlive the
// runner.
Result<std::unique_ptr<train::StepRunner>> make_process_runner(Crew& crew);

}  // namespace ostro::fleet
