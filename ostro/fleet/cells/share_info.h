// share_info: gives all workers what worker 0 records beside a state that is saved: its step and kind, the
// config, the head of the chain.
#pragma once

#include "ostro/checkpoint/manifest.h"
#include "ostro/runtime/collectives.h"

namespace ostro::fleet {

// Called by all workers: `info` becomes worker 0's. Errors: those of the collectives.
Status share_info(runtime::Collectives& group, checkpoint::Info& info);

}  // namespace ostro::fleet
