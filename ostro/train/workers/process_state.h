// Moving a training state between the leader and the workers of a group of processes.
#pragma once

#include "ostro/train/workers/worker.h"

namespace ostro::train {

// Every worker gets the leader's state. Called by all of them; only the leader's `state` is read.
Result<State> share_state(const WorkerPlan& plan, runtime::Collectives& group, const State& state);

// Sends the owners' cells of the moments to the leader, which joins them into `state`. Called by all; only
// the leader's `state` is changed.
Status collect_moments(const WorkerPlan& plan, runtime::Collectives& group, const Worker& worker,
                       State& state);

}  // namespace ostro::train
