#include "ostro/tokenizer/bpe/piece_table.h"

#include <bit>

#include "ostro/base/check.h"

namespace ostro::tokenizer {

PieceTable::PieceTable(size_t count) : entries_(std::bit_ceil(2 * count + 2)), mask_(entries_.size() - 1) {}

void PieceTable::insert(std::string_view piece, uint32_t id) {
  OSTRO_CHECK(!piece.empty() && bytes_.size() + piece.size() <= 0xFFFFFFFF,
              "an empty token, or tokens of more than 4 GiB");
  const uint64_t hash = hash_bytes(piece);
  size_t i = hash & mask_;
  while (entries_[i].length != 0) i = (i + 1) & mask_;
  entries_[i] = {static_cast<uint32_t>(hash >> 32), id, static_cast<uint32_t>(bytes_.size()),
                 static_cast<uint32_t>(piece.size())};
  bytes_ += piece;
}

}  // namespace ostro::tokenizer
