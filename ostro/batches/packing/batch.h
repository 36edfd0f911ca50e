// Batch: one batch of training or held-out sequences, and its fingerprint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ostro::batches {

// Arrays are row-major [batch, pos].
struct Batch {
  int64_t step = 0;
  int64_t batch_size = 0, seq_len = 0;
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;  // the next token of the document or stream
  std::vector<float> loss_mask;  // weight of the target in the loss; 0 for padding
  // number of the segment of a token within its sequence, from 0. Tokens attend only to their own segment.
  // Empty when the configuration has no segments (has_segments in data_set.h).
  std::vector<int32_t> segment_ids;
  // A row is a preference pair: the first half of its seq_len positions holds one text, the second the other.
  bool pairs = false;
  // The scores of the answers of a pair by the starting weights: two values by row (PairScores in
  // data_set.h), 0 for padding rows. Empty when the data set has no such scores.
  std::vector<double> reference;
  std::vector<int64_t> sequences;  // by row: number in its component; -1 for padding rows
  std::vector<size_t> components;  // by row: index into components_of(options)
};

// Makes a batch whose rows the caller then fills. The rows of a new batch are padding. `memory` is a batch
// that is no longer needed. Its arrays are reused with their old content, so every row must then be filled
// completely. (Fresh memory from the kernel costs more time than the tokens do.)
struct BatchShape {
  int64_t seq_len = 0;
  bool segments = false, pairs = false, reference = false;
};
Batch make_batch(int64_t step, int64_t rows, const BatchShape& shape, Batch memory = {});

// Turns the positions of a row from `position` on into padding. With segment ids, the padding gets `segment`.
void pad_row(Batch& batch, int64_t row, int64_t position, int32_t segment);

// SHA-256 over the SHA-256 digests of all rows, in order. The digest of a row is over seq_len (int64),
// tokens, targets, loss mask (f32) and segment ids, little-endian. So each worker can hash its own rows.
// Entries of a run's chain hold this fingerprint.
std::string batch_fingerprint(const Batch& batch);

}  // namespace ostro::batches
