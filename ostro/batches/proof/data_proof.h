// DataProof: rows of token stores with the proofs that a run's data has them, and which sequences of a
// training step they make (docs/reference/formats/data_proof.md). A reader who has neither the store nor the
// texts can check it, and compute with the sequences. A value; the functions are pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/batches/packing/batch.h"
#include "ostro/data/arrays/row_proof.h"

namespace ostro::batches {

// A row of a store, with its tokens and the proof of its place in the tree of rows.
struct ProvenRow {
  std::string component;  // "" without components
  data::RowProof proof;
  std::vector<uint32_t> ids;
  std::vector<float> weights;  // empty: all are 1
  // Where the text came from, for people; nothing proves it.
  std::string file;
  int64_t document = 0;
};

// Positions [begin, end) of a sequence hold tokens of a row from `first_token` on.
struct ProvenSpan {
  int64_t row = 0;  // in DataProof::rows
  int64_t begin = 0, end = 0, first_token = 0;
  // The target of the last position is the next token of `row` (-1), or the first token of this other row of
  // DataProof::rows.
  int64_t next = -1;
};

// A sequence of the batch, as spans of rows.
struct ProvenSequence {
  int64_t sequence = 0;      // its number in the component
  bool by_document = false;  // whether each span is a segment of its own
  std::vector<ProvenSpan> spans;
};

// Neighbouring sequences of the batch of one step.
struct ProvenBatch {
  int64_t step = 0;  // the step that is done on it, from 1 as in the chain
  int64_t seq_len = 0;
  bool segments = false;
  std::vector<Sha256Digest> digests;  // of all sequences of the batch (row_digest)
  int64_t first = 0;                  // number in the batch of the first of `sequences`
  std::vector<ProvenSequence> sequences;
  // With a leaf: its number, how many the step has, and its path to the step's Merkle root.
  int64_t leaf = -1, leaves = 0;
  std::vector<Sha256Digest> leaf_path;
};

// The content of a proof file.
struct DataProof {
  std::vector<ProvenRow> rows;
  std::optional<ProvenBatch> batch;
};

// Canonical JSON and a newline, and back. Errors: kCorrupt, beginning with `path`, names the field.
std::string proof_text(const DataProof& proof);
Result<DataProof> parse_proof(std::string_view text, const std::string& path);

// The roots of the components whose rows the proof has. Error: kCorrupt names a row whose proof does not hold
// together, or two rows that lead to different roots; or there are no rows.
Result<std::map<std::string, std::string>> roots_of_proof(const DataProof& proof);

// Checks that every sequence is what its rows make, and that every row is used. It takes no memory for
// seq_len. Error: kCorrupt when a sequence has another digest, when there are no sequences, when a row is in
// none of them, or when the proof has no batch.
Status check_sequences(const DataProof& proof);
// Returns the batch with the proven sequences filled in; all others are padding. It has as many tokens as
// seq_len and the number of digests say, so compare these with the run first. Errors: as check_sequences.
Result<Batch> batch_of_proof(const DataProof& proof);
// The fingerprint that the chain must have for the step.
std::string fingerprint_of_proof(const ProvenBatch& batch);

}  // namespace ostro::batches
