// MemoryNeed: the memory that the steps of a run take in one process, computed before any of it is allocated.
#pragma once

#include <cstdint>
#include <string>

#include "ostro/runtime/engine.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

// All in bytes.
struct MemoryNeed {
  int64_t state = 0;                      // parameters and the optimizer's arrays
  int64_t gradients = 0;                  // partial sums that live at one time
  int64_t leaf = 0, update = 0, add = 0;  // the arenas of the programs

  // What the steps of a run hold when they hold most.
  int64_t total() const { return state + gradients + leaf + update + add; }
};

// For steps of `leaves` leaves on one worker. Programs are only planned; no code is compiled.
Result<MemoryNeed> memory_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                               const std::string& remat, int64_t leaves);

}  // namespace ostro::train
