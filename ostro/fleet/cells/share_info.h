// share_info: gives all workers the record of worker 0 about a state that is saved: its step and kind, the
// config, the head of the chain.
#pragma once

#include "ostro/checkpoint/manifest.h"
#include "ostro/runtime/collectives.h"

namespace ostro::fleet {

// All workers call it; `info` becomes that of worker 0. Errors: those of the collectives.
Status share_info(runtime::Collectives& group, checkpoint::Info& info);

}  // namespace ostro::fleet
