// batch_json, batch_summary, batch_explained: batches as text, for `ostro data batch`. Pure functions.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "ostro/batches/loader/batch_sources.h"
#include "ostro/batches/packing/batch.h"

namespace ostro::corpus_check {

// {"step": n, "fingerprint": "...", "sequences": [{"tokens": [...], "targets": [...], "loss_mask": [...],
// "source": {...}}]} on one line. The source has the "component" when there are several, the number of the
// "sequence" in the store, the "file" and "document" of its first token, and all "documents" of the sequence:
// the tokens at positions ["begin", "end") of the sequence are the document's tokens from number
// "first_token" on; the place of the row in its file is added where it is known (add_place). The source is
// null for padding. "segment_ids" are written when there are any. `sources` is the result of batch_sources
// for this batch.
std::string batch_json(const batches::Batch& batch, std::span<const batches::SequenceSource> sources);

// The batch for people: a few lines for each sequence, with its tokens.
std::string batch_summary(const batches::Batch& batch, std::span<const batches::SequenceSource> sources);

// The sources of every sequence, one line for each of its documents: component, file, row, place, tokens.
std::string batch_explained(const batches::Batch& batch, std::span<const batches::SequenceSource> sources);

// Adds the known parts of a place to a JSON object: "bytes" [begin, end); for a .parquet "columns",
// "row_group", "row_in_group" and "cell_bytes" [0, end); "unknown", the reason why something is not known.
void add_place(const batches::RowPlace& place, nlohmann::ordered_json& out);
// The place as the end of a line: ", bytes 0 to 99", or ", columns text, row 3 of row group 0, bytes 0 to 99
// of its text". Empty when nothing is known.
std::string place_text(const batches::RowPlace& place);

}  // namespace ostro::corpus_check
