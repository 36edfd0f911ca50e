// MemoryNeed: the memory that a run takes in one process, computed before any of it is allocated. Errors are
// those of planning the programs on the engine.
#pragma once

#include <cstdint>

#include "ostro/train/options/config.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

// Bytes. On a device they are those of the blocks of its memory (runtime::Memory::taken).
struct MemoryNeed {
  int64_t base = 0;       // what the process held when this was planned: code, data, tokenizer
  int64_t state = 0;      // parameters and the optimizer's arrays
  int64_t gradients = 0;  // partial sums that live at one time
  // Of the programs leaf, sum of gradients and update: the arenas; on a device also constants, tables and
  // working memory.
  int64_t arenas = 0;
  // New values beside those from which a checkpoint is written while steps go on, and buffers. On a device
  // there are new values only where there is room beside everything else (snapshot_beside), so they are not
  // needed.
  int64_t saving = 0;
  // On the host: panels of products, batches, code; and what an evaluation or the last checkpoint needs
  // beyond gradients. On a device: what the moment that needs most has beside state, gradients and arenas,
  // which may be a leaf, an update or an evaluation: batches, small results, the evaluation's program.
  int64_t beside = 0;
  // On a device: compiled programs, which its memory does not count.
  int64_t code = 0;

  // total(): the bytes to be allocated. room(): those that must be free. peak(): the most bytes that the
  // process holds at a time.
  int64_t total() const { return state + gradients + arenas + saving + beside; }
  int64_t room() const { return total() + code; }
  int64_t peak() const { return base + total(); }
};

// The bytes that a program with this info holds from its first run on, beside its results.
int64_t standing_bytes(const runtime::ExecutableInfo& info, const runtime::Memory& memory);
// The bytes of compiled programs on a device, which no count of its memory has; 0 on the host.
int64_t code_bytes(const runtime::Memory& memory);

// Returns the memory of the steps of this configuration on one worker, with at most `leaves` leaves, without
// evaluation, `saving`, `beside` and `code`. Programs are only planned; no code is compiled.
Result<MemoryNeed> step_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                             const TrainConfig& config, int64_t leaves);
// Returns the whole memory of a run on one worker. `vocab` is the number of tokens of the tokenizer. Programs
// are only planned; no code is compiled.
Result<MemoryNeed> memory_need(const CanonicalPrograms& programs, runtime::Engine& engine,
                               const TrainConfig& config, int64_t vocab);

}  // namespace ostro::train
