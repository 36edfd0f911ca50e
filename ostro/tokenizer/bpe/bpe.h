// BpeModel: byte-pair encoding (BPE) of one piece of text. It merges the adjacent pair of tokens with the
// lowest merge rank, again and again, until no pair has a merge. Of pairs with the same rank, the leftmost is
// merged first.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/tokenizer/bpe/long_merge.h"
#include "ostro/tokenizer/bpe/merge_table.h"
#include "ostro/tokenizer/bpe/piece_table.h"
#include "ostro/tokenizer/bpe/window_merge.h"

namespace ostro::tokenizer {

// Working memory for encoding, one per thread.
struct BpeScratch {
  WindowMerge windows;
  LongMerge long_merge;
  std::vector<uint32_t> ids;
};

// A BPE model over bytes. Threads may share it once it is built: byte_ids, then set_merges, then
// set_whole_pieces.
class BpeModel {
 public:
  BpeModel() { byte_ids.fill(kNoToken); }

  // The token of each byte. kNoToken if the vocabulary has none; such bytes are dropped.
  std::array<uint32_t, 256> byte_ids;

  // Sets the merges, the lowest rank first; the rank of a merge is its index. At most 2^26 - 1 of them.
  void set_merges(std::vector<Merge> by_rank);
  const MergeTable& merges() const { return table_; }

  // Finds the pieces that are a single token, so that they need no merging. Call it after byte_ids and
  // set_merges. `token_bytes` holds the bytes of each token by id, "" for none. With ignore_merges (a flag of
  // tokenizer.json) every token is such a piece. Without it, only tokens that the merges really produce from
  // their bytes are.
  void set_whole_pieces(std::span<const std::string> token_bytes, bool ignore_merges);

  // Appends the token ids of a piece of text. The time is linear in its length.
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<uint32_t>& out) const;

 private:
  MergeTable table_;
  MergeOrder order_;
  PieceTable whole_;
};

}  // namespace ostro::tokenizer
