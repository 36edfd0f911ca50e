// Byte-pair encoding of one piece: repeatedly joins the adjacent pair with the lowest merge rank, the
// leftmost of equals, until no pair has a merge.
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

// The model; immutable after it is built, so threads may share it.
class BpeModel {
 public:
  BpeModel() { byte_ids.fill(kNoToken); }

  // Token of each byte, kNoToken when the vocabulary lacks it (such bytes vanish).
  std::array<uint32_t, 256> byte_ids;

  void set_merges(std::vector<Merge> by_rank);
  const MergeTable& merges() const { return table_; }

  // Tells which pieces are one token, so that they need no merging; call after byte_ids and set_merges.
  // `token_bytes` by id, "" for none. With ignore_merges every token is such a piece, as a tokenizer.json
  // with that flag says; otherwise those that the merges make of their bytes.
  void set_whole_pieces(std::span<const std::string> token_bytes, bool ignore_merges);

  // Appends the token ids of a piece of text. Linear in its length.
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<uint32_t>& out) const;

 private:
  MergeTable table_;
  MergeOrder order_;
  PieceTable whole_;
};

}  // namespace ostro::tokenizer
