// replay_text: says which steps of a run can be replayed with the states in a bundle, and at what cost. A
// pure function.
#pragma once

#include <optional>
#include <string>

#include "ostro/bundle/parts/manifest.h"
#include "ostro/chain/record.h"

namespace ostro::bundle {

// The cost is the time that the steps took in the run's sessions (`record`), which a replay needs on the same
// machine.
std::string replay_text(const chain::Chain& chain, const BundleManifest& manifest,
                        const std::optional<chain::RunRecord>& record);

}  // namespace ostro::bundle
