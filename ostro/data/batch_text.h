// Batches as text, for `ostro data batch`.
#pragma once

#include <string>

#include "ostro/data/loader.h"

namespace ostro::data {

// {"step": n, "fingerprint": "...", "sequences": [{"tokens": [...], "targets": [...], "loss_mask": [...],
// "source": {...}}]} on one line. The source has the "component" when there are several, the number of the
// "sequence" in the store, the "file" and "document" of its first token, and all "documents" of the sequence:
// positions ["begin", "end") of it are the document's tokens from "first_token" on, and "bytes" [first, end)
// of the unpacked file hold its row, where that is known. Besides: "segment_ids" when there are any. `loader`
// made the batch.
Result<std::string> batch_json(const Batch& batch, const Loader& loader);

// The same for people: a few lines a sequence, with its tokens.
Result<std::string> batch_summary(const Batch& batch, const Loader& loader);

// Where every sequence comes from, a line for each of its documents: component, file, row, bytes, tokens.
Result<std::string> batch_sources(const Batch& batch, const Loader& loader);

}  // namespace ostro::data
