// One batch of training or held-out sequences, and its fingerprint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ostro::data {

// Arrays are row-major [batch, pos].
struct Batch {
  int64_t step = 0;
  int64_t batch_size = 0, seq_len = 0;
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;      // the token that follows in its document or stream
  std::vector<float> loss_mask;      // what the target weighs in the loss; 0: padding
  std::vector<int32_t> segment_ids;  // when any sequence has parts that must not attend to each other, else
                                     // empty: which part of its sequence a token is of, from 0
  std::vector<int64_t> sequences;    // by row, in its component; -1 for rows that are padding
  std::vector<size_t> components;    // by row: index into components_of(options)
};

// A batch whose rows are to be filled; those of a new one are padding. `memory`: a batch that nobody needs
// any more, whose arrays are used again as they are, so that all of every row must be filled: memory that is
// fresh from the kernel costs more than the tokens do.
Batch make_batch(int64_t step, int64_t rows, int64_t seq_len, bool segments, Batch memory = {});

// Makes padding of a row from `position` on, with a segment of its own where there are any.
void pad_row(Batch& batch, int64_t row, int64_t position, int32_t segment);

// SHA-256 over the SHA-256 of every row in order; a row's is over seq_len (int64), tokens, targets, loss mask
// (f32) and segment ids, little-endian. So each worker can hash its own rows. What a chain entry holds.
std::string batch_fingerprint(const Batch& batch);

}  // namespace ostro::data
