// Int8Blocks: how the contracted axis of an integer product is cut (docs/spec/numerics.md, N20): into leaves
// (N8), and each leaf into blocks that share a scale. Blocks are counted from the beginning of their leaf;
// its last block may be short.
//
// Int8Operand: an operand of an integer product in memory, as a quantiser leaves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ostro/ir/program/int8_limits.h"

namespace ostro::kernels {

class Int8Blocks {
 public:
  struct Block {
    int64_t begin, count;
  };

  // Leaf i ends before leaf_ends[i]; they ascend, and the last is k. Equal ends make an empty leaf. Empty
  // list: one leaf. Aborts when they contradict k, or when `block` is not from 1 to ir::kMaxInt8Block.
  explicit Int8Blocks(int64_t k, int64_t block = ir::kInt8Block, std::vector<int64_t> leaf_ends = {});

  int64_t k() const { return k_; }
  int64_t block() const { return block_; }
  // The number of blocks, and so of scales in a row of an operand.
  int64_t count() const { return static_cast<int64_t>(blocks_.size()); }
  const std::vector<Block>& blocks() const { return blocks_; }
  int64_t leaves() const { return static_cast<int64_t>(leaf_ends_.size()); }
  // The blocks of a leaf are [leaf_begin(leaf), leaf_begin(leaf + 1)).
  int64_t leaf_begin(int64_t leaf) const { return leaf_begin_[static_cast<size_t>(leaf)]; }
  bool operator==(const Int8Blocks& other) const {
    return k_ == other.k_ && block_ == other.block_ && leaf_ends_ == other.leaf_ends_;
  }

 private:
  int64_t k_, block_;
  std::vector<int64_t> leaf_ends_, leaf_begin_;
  std::vector<Block> blocks_;
};

// Rows of int8 numbers from -127 to 127, k contiguous, and their scales, one for each block. Row i begins at
// q + r * stride and scales + r * scale_stride, where r is row_at[i], or i where `row_at` is null.
struct Int8Operand {
  const int8_t* q = nullptr;
  int64_t stride = 0;
  const float* scales = nullptr;
  int64_t scale_stride = 0;
  const int64_t* row_at = nullptr;
};

}  // namespace ostro::kernels
