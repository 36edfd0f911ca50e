// selftest_hash: the self-test: small training runs in memory whose hash is known. It needs no files and
// gives the same hash on every machine.
#pragma once

#include <string>

#include "ostro/runtime/engine.h"

namespace ostro::run {

// The expected result of selftest_hash for numerics version 1 (version.h), also shown in README.md. Only a
// change of the numerics may change it.
inline constexpr const char* kSelftestHash =
    "f055dd224933d6441c40782b48fc3ef98900529b720023ad51b5c6a5acf53cec";

// Generates text with threefry, trains a tokenizer on it, and trains two tiny Llamas: one in f32 with an
// untied head, one in bf16 with tied embeddings and feature leaves.
//
// The hash is a SHA-256 of the tokenizer's hash, the token store's hash, and every step and checkpoint entry
// of both chains. So it covers batches, losses, the gradients' tree and the state. Names of options are left
// out, so that options can be added. Errors: of the engine.
Result<std::string> selftest_hash(runtime::Engine& engine, int64_t workers);

}  // namespace ostro::run
