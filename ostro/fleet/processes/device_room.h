// device_need, check_device_room: whether the steps of a worker fit into the memory of its device, which
// other workers may share. Programs are only planned; no code is compiled. Any thread may call.
#pragma once

#include <cstdint>
#include <string>

#include "ostro/fleet/workers/worker.h"

namespace ostro::fleet {

// The bytes that a worker needs in steps of `leaves` leaves, in blocks of
// its engine's memory: its state, gradients, batches and programs, or at an evaluation, which is `evaluation`
// (train::held_out_program), what that has instead of gradients. With room for compiled programs, which no
// memory counts. Errors: those of planning the programs.
Result<int64_t> device_need(const Worker& worker, int64_t leaves, const ir::Program& evaluation);

// Checks that `need`, the bytes of this worker, for each of `sharers` workers are at most what the memory of
// its engine has available. Ok for the host's memory, and where it is not known. Error: kDevice, with the
// numbers, what takes less, and the rematerialisation policy that fits and computes least again.
Status check_device_room(int64_t need, const Worker& worker, int64_t sharers);

// The most that a worker of a plan for all workers needs, and what check_device_room() says of that worker.
struct MeshNeed {
  int64_t bytes = 0;
  Status fits;
};
Result<MeshNeed> mesh_need(const WorkerPlan& plan, int64_t leaves, const ir::Program& evaluation,
                           int64_t sharers);

}  // namespace ostro::fleet
