// Batches as text, for `ostro data batch`.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "ostro/data/batch/batch_sources.h"
#include "ostro/data/packing/batch.h"

namespace ostro::data {

// {"step": n, "fingerprint": "...", "sequences": [{"tokens": [...], "targets": [...], "loss_mask": [...],
// "source": {...}}]} on one line. The source has the "component" when there are several, the number of the
// "sequence" in the store, the "file" and "document" of its first token, and all "documents" of the sequence:
// positions ["begin", "end") of it are the document's tokens from "first_token" on, and what is known of the
// row's place (add_place); it is null for padding. Besides: "segment_ids" when there are any. `sources`:
// batch_sources of the batch.
std::string batch_json(const Batch& batch, std::span<const SequenceSource> sources);

// The same for people: a few lines a sequence, with its tokens.
std::string batch_summary(const Batch& batch, std::span<const SequenceSource> sources);

// Where every sequence comes from, a line for each of its documents: component, file, row, place, tokens.
std::string batch_explained(const Batch& batch, std::span<const SequenceSource> sources);

// Adds what is known of a place to an object: "bytes" [begin, end); of a .parquet "columns", "row_group",
// "row_in_group" and "cell_bytes" [0, end); "unknown", a reason.
void add_place(const RowPlace& place, nlohmann::ordered_json& out);
// ", bytes 0 to 99"; ", columns text, row 3 of row group 0, bytes 0 to 99 of its text"; empty: nothing is.
std::string place_text(const RowPlace& place);

}  // namespace ostro::data
