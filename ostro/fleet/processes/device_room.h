// device_need, check_device_room: whether the steps of a worker fit into the memory of its device, which
// other workers may share.
#pragma once

#include <cstdint>

#include "ostro/fleet/workers/worker.h"

namespace ostro::fleet {

// The bytes that a worker takes in a step of `leaves` leaves: its state, gradients and the arenas of its
// programs. Errors: those of compiling them.
Result<int64_t> device_need(Worker& worker, int64_t leaves);

// Checks that `need` bytes for each of `sharers` workers are at most what the memory has available. Ok for
// the host's memory, and where it is not known. Error: kDevice, with the numbers and what takes less.
Status check_device_room(int64_t need, int64_t sharers, const runtime::Memory& memory);

}  // namespace ostro::fleet
