// MemoryNeed: the memory that a run takes in one process, computed before any of it is allocated.
#pragma once

#include <cstdint>

#include "ostro/train/options/config.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

// All in bytes.
struct MemoryNeed {
  int64_t base = 0;       // what the process held when this was planned: code, data, tokenizer
  int64_t state = 0;      // parameters and the optimizer's arrays
  int64_t gradients = 0;  // partial sums that live at one time
  int64_t arenas = 0;     // of the programs: leaf, sum of gradients, update, evaluation
  // New values beside those that a checkpoint is written from, where steps go on meanwhile.
  int64_t saving = 0;
  int64_t beside = 0;  // panels of products, stacks, batches, buffers, and blocks that are kept for reuse

  // To be allocated, and what the process holds when it holds most.
  int64_t total() const { return state + gradients + arenas + saving + beside; }
  int64_t peak() const { return base + total(); }
};

// What the steps of this configuration take on one worker, with so many leaves at most: all but evaluation,
// saving and what lies beside the values. Programs are only planned; no code is compiled.
Result<MemoryNeed> step_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                             const TrainConfig& config, int64_t leaves);
// On one worker. Programs are only planned; no code is compiled. `vocab`: of the tokenizer.
Result<MemoryNeed> memory_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                               const TrainConfig& config, int64_t vocab);

}  // namespace ostro::train
