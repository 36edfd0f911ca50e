// What is said about a state that is saved, told to all workers.
#pragma once

#include "ostro/checkpoint/manifest.h"
#include "ostro/runtime/collectives.h"

namespace ostro::fleet {

// Called by all workers: `info` becomes worker 0's.
Status share_info(runtime::Collectives& group, checkpoint::Info& info);

}  // namespace ostro::fleet
