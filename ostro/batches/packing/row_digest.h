// row_digest: the part of a batch's fingerprint that one of its rows gives (docs/spec/batches.md). A pure
// function.
#pragma once

#include "ostro/base/sha256.h"
#include "ostro/batches/packing/batch.h"

namespace ostro::batches {

// SHA-256 over seq_len (int64), tokens, targets, loss mask (f32) and segment ids (i32) of the row,
// little-endian. The fingerprint of a batch is the SHA-256 over those of its rows.
Sha256Digest row_digest(const Batch& batch, int64_t row);

}  // namespace ostro::batches
