// calibrate: measures on this machine what a host's speed is: the leaf program, sums of gradients, the update
// and the fingerprints of a run, and messages between processes over loopback.
#pragma once

#include "ostro/runtime/engine.h"
#include "ostro/simulate/step/step_plan.h"

namespace ostro::simulate {

// Returns `options` with the measured seconds in place of leaf_seconds, add_seconds, update_seconds,
// print_seconds, loopback_gbytes and message_us. It takes some leaves' time, on the threads of `engine`, and
// a second. The model must fit into memory. Errors: those of the programs and of the connections.
Result<SimulateOptions> calibrate(const RunModel& model, runtime::Engine& engine, SimulateOptions options);

}  // namespace ostro::simulate
