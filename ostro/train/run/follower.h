// Training on several processes: what every process but the leader does.
#pragma once

#include "ostro/train/run/run.h"
#include "ostro/train/workers/process_group.h"

namespace ostro::train {

// Does the leader's commands until it ends the run. Reads the same data as the leader, writes nothing.
// `given` says which kinds of models there are; everything else of the configuration comes from the leader.
// Errors: the programs or the data are others here than there (names both); the group was lost (group.lost is
// set).
Status follow(const TrainConfig& given, const Environment& environment, ProcessGroup& group);

}  // namespace ostro::train
