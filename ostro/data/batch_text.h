// Batches as text, for `ostro data batch`.
#pragma once

#include <string>

#include "ostro/data/loader.h"

namespace ostro::data {

// {"step": n, "sequences": [{"tokens": [...], "loss_mask": [...], "source": {...}}]} on one line. The source
// has the number of the "sequence" in the store, the "file" and "document" of its first token, and all
// "documents" of the sequence: positions ["begin", "end") of it are the document's tokens from "first_token"
// on. Besides: "targets", "segment_ids" when there are any, and the batch's "fingerprint". `reader` made the
// batch.
Result<std::string> batch_json(const Batch& batch, const SequenceReader& reader);

// The same for people: a few lines a sequence.
Result<std::string> batch_summary(const Batch& batch, const SequenceReader& reader);

}  // namespace ostro::data
