// Training steps on several processes: the leader's part.
#pragma once

#include <memory>

#include "ostro/train/options/config.h"
#include "ostro/train/step/step.h"
#include "ostro/train/workers/process_group.h"

namespace ostro::train {

// A runner whose steps are done together with the followers of `group` (follower.h), in which this process
// has rank 0. It connects with them before the first step. When a follower is lost, run() gives an error and
// sets group.lost. The destructor tells the followers that the run ends. `engine` and `group` must outlive
// it.
Result<std::unique_ptr<StepRunner>> make_process_runner(const CanonicalPrograms& programs,
                                                        runtime::Engine& engine, const std::string& remat,
                                                        const TrainConfig& config, ProcessGroup& group);

}  // namespace ostro::train
