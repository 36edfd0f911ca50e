// The self-test: a small training run whose hash is known, to be had on every machine without any file.
#pragma once

#include <string>

#include "ostro/runtime/engine.h"

namespace ostro::train {

// What selftest_hash gives for numerics version 1 (version.h). It changes with the numerics and with nothing
// else; README.md shows it.
inline constexpr const char* kSelftestHash =
    "f055dd224933d6441c40782b48fc3ef98900529b720023ad51b5c6a5acf53cec";

// Writes text with threefry, trains a tokenizer on it, and two tiny Llamas in memory: one in f32 with an
// untied head, one in bf16 with tied embeddings and feature leaves. The SHA-256 of the tokenizer's hash, the
// token store's, and every step and checkpoint entry of both chains: batches, losses, gradients' tree and
// state, but not the names of options, which may grow. Errors: of the engine.
Result<std::string> selftest_hash(runtime::Engine& engine, int64_t workers);

}  // namespace ostro::train
