// The trace event format of Chrome and Perfetto, as JSON.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/profile.h"

namespace ostro::train {

// One object: "traceEvents" with a complete event ("ph": "X", microseconds since the first span) for every
// span and metadata events that name the process and the threads. The training thread comes first.
std::string trace_json(const std::vector<ProfileTrack>& tracks);

}  // namespace ostro::train
