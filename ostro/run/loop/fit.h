// check_fit: whether a run's steps fit into the memory that this process may still take.
#pragma once

#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"
#include "ostro/train/step/memory_need.h"

namespace ostro::run {

// Ok if what is to be allocated is at most what the engine's memory has available, or if that is not known.
// Else kInvalidArgument with both numbers and the smallest changes that fit, found by planning other
// configurations: first those that change no bit. Nothing is allocated or compiled.
// `vocab`: of the tokenizer. On one worker.
Status check_fit(const train::TrainConfig& config, const train::MemoryNeed& need, int64_t vocab,
                 runtime::Engine& engine);

// The need of a configuration on one worker; `vocab` as above.
Result<train::MemoryNeed> need_of(const train::TrainConfig& config, int64_t vocab, runtime::Engine& engine);

}  // namespace ostro::run
