// selftest_hashes: the self-test: small training runs in memory whose hashes are known. It needs no files and
// gives the same hashes on every machine.
#pragma once

#include <string>

#include "ostro/runtime/engine.h"

namespace ostro::run {

// A hash of the two models whose products are of floats, and one of the model with integer products.
struct SelftestHashes {
  std::string floats, integers;

  bool operator==(const SelftestHashes&) const = default;
};

// The expected results for numerics version 1 (version.h), also shown in README.md. Only a change of the
// numerics may change them.
inline constexpr const char* kSelftestHash =
    "f055dd224933d6441c40782b48fc3ef98900529b720023ad51b5c6a5acf53cec";
inline constexpr const char* kSelftestIntegersHash =
    "3c408954c940ddbc0cc7ac7a2af509f46012ab010b260d60b6c71c6a4d40de41";

// Returns the hashes above.
SelftestHashes known_selftest_hashes();

// Generates text with threefry, trains a tokenizer on it, and trains three tiny Llamas: one in f32 with an
// untied head, one in bf16 with tied embeddings and feature leaves, and one with integer products (N20).
//
// Each hash is a SHA-256 of the tokenizer's hash, the token store's hash, and every step and checkpoint entry
// of the chains. So it covers batches, losses, the gradients' tree and the state. Names of options are left
// out, so that options can be added. Errors: of the engine.
Result<SelftestHashes> selftest_hashes(runtime::Engine& engine, int64_t workers);

}  // namespace ostro::run
