// trace_json: a recorded profile in the trace event format of Chrome and Perfetto, which is JSON.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/profile.h"

namespace ostro::train {

// One JSON object. "traceEvents" has a complete event ("ph": "X", times in microseconds since the first span)
// for every span, and metadata events with the names of the process and the threads. The training thread
// comes first.
std::string trace_json(const std::vector<ProfileTrack>& tracks);

}  // namespace ostro::train
