// PieceTable: the pieces that are a single token, as an open-addressing hash table from bytes to token id.
// Does not change after the last insert(), so threads may then share it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/tokenizer/bpe/piece_hash.h"

namespace ostro::tokenizer {

class PieceTable {
 public:
  // An empty table with room for `count` pieces; insert() must not be called more often. So the table is at
  // most half full, and a search ends soon.
  explicit PieceTable(size_t count = 0);

  // Adds a piece that is not in the table yet. It must not be empty, and all pieces together must have less
  // than 4 GiB; anything else ends the program.
  void insert(std::string_view piece, uint32_t id);

  // The token of a piece, or 0xFFFFFFFF (kNoToken).
  uint32_t find(std::string_view piece) const {
    const uint64_t hash = hash_bytes(piece);
    for (size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const Entry& e = entries_[i];
      if (e.length == 0) return 0xFFFFFFFF;
      if (e.tag == static_cast<uint32_t>(hash >> 32) && e.length == piece.size() &&
          std::string_view(bytes_).substr(e.begin, e.length) == piece)
        return e.id;
    }
  }

 private:
  struct Entry {
    uint32_t tag = 0, id = 0;
    uint32_t begin = 0, length = 0;  // position in bytes_; length 0: empty slot
  };
  std::vector<Entry> entries_;
  size_t mask_ = 0;
  std::string bytes_;
};

}  // namespace ostro::tokenizer
