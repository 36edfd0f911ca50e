// MemoryNeed: the memory that a run takes in one process, computed before any of it is allocated. Errors are
// those of planning the programs on the engine.
#pragma once

#include <cstdint>

#include "ostro/train/options/config.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

// Bytes.
struct MemoryNeed {
  int64_t base = 0;       // what the process held when this was planned: code, data, tokenizer
  int64_t state = 0;      // parameters and the optimizer's arrays
  int64_t gradients = 0;  // partial sums that live at one time
  int64_t arenas = 0;     // arenas of the programs: leaf, sum of gradients, update
  // New values beside those from which a checkpoint is written while steps go on, and buffers.
  int64_t saving = 0;
  // Panels of products, batches, code; and what an evaluation or the last checkpoint needs beyond gradients.
  int64_t beside = 0;

  // total(): the bytes to be allocated. peak(): the most bytes that the process holds at a time.
  int64_t total() const { return state + gradients + arenas + saving + beside; }
  int64_t peak() const { return base + total(); }
};

// Returns the memory of the steps of this configuration on one worker, with at most `leaves` leaves, without
// evaluation, `saving` and `beside`. Programs are only planned; no code is compiled.
Result<MemoryNeed> step_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                             const TrainConfig& config, int64_t leaves);
// Returns the whole memory of a run on one worker. `vocab` is the number of tokens of the tokenizer. Programs
// are only planned; no code is compiled.
Result<MemoryNeed> memory_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                               const TrainConfig& config, int64_t vocab);

}  // namespace ostro::train
