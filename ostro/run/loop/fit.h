// check_fit: checks that a run's steps fit into the memory that this process can still allocate.
#pragma once

#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"
#include "ostro/train/step/memory_need.h"

namespace ostro::run {

// Checks that `need` is at most what the engine's memory has available, on one worker; ok if that is not
// known. `vocab` is the number of tokens of the tokenizer. Error: kInvalidArgument with both numbers and the
// smallest changes that fit, first those that change no bit. They are found by planning other configurations;
// nothing is allocated or compiled.
Status check_fit(const train::TrainConfig& config, const train::MemoryNeed& need, int64_t vocab,
                 runtime::Engine& engine);

// The memory that a configuration needs on one worker; `vocab` as above.
Result<train::MemoryNeed> need_of(const train::TrainConfig& config, int64_t vocab, runtime::Engine& engine);

}  // namespace ostro::run
