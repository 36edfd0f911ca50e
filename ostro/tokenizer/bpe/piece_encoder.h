// PieceEncoder: encodes text with a byte-level BPE model. The splitter cuts the text into pieces, a cache
// gives the ids of pieces seen before, and the model encodes the others.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/tokenizer/bpe/bpe.h"
#include "ostro/tokenizer/split/splitter.h"

namespace ostro::tokenizer {

// One per thread; the model must outlive it. The cache is two direct-mapped tables of fixed size (12 MiB in
// all). A newer piece replaces the older one in its slot. The whole piece is compared, so a hash collision
// costs time but never gives wrong ids.
class PieceEncoder {
 public:
  explicit PieceEncoder(const BpeModel& model) : model_(model) {}

  // Turns the cache on. Without it every piece is computed anew, which is better for one short text.
  void remember_pieces();
  bool remembers() const { return memory_ != nullptr; }

  // Appends the ids of valid UTF-8 text, cut by the splitter.
  void encode(Splitter splitter, std::string_view text, std::vector<uint32_t>& out);

  // Appends the ids of one piece.
  void encode_piece(std::string_view piece, std::vector<uint32_t>& out);

 private:
  struct ShortSlot;
  struct LongSlot;
  struct Batch;
  ShortSlot& short_slot(uint64_t hash) const;
  LongSlot& long_slot(std::string_view piece) const;
  void encode_long(std::string_view piece, std::vector<uint32_t>& out);
  void encode_batch(std::string_view text, size_t begin, Batch& batch, std::vector<uint32_t>& out);
  void learn(ShortSlot& slot, const char* key, std::string_view piece, std::vector<uint32_t>& out);

  const BpeModel& model_;
  BpeScratch scratch_;
  AlignedBytes memory_;
};

}  // namespace ostro::tokenizer
