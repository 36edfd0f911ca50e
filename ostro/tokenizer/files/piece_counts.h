// How often each piece occurs in a set of documents: all that BPE training needs to know of the text.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/tokenizer/split/splitter.h"

namespace ostro::tokenizer {

// Counts of pieces; counts are exact integers, so adding up per-thread counts in any order gives the same.
// The memory grows with the distinct pieces, not with the text.
class PieceCounts {
 public:
  PieceCounts();

  // Adds every piece of a document (malformed bytes are read as U+FFFD).
  void add_document(Splitter splitter, std::string_view document);

  void add(const PieceCounts& other);

  // Bytes of all distinct pieces.
  uint64_t distinct_bytes() const { return distinct_bytes_; }

  // All pieces with their counts, in the order of their bytes; views into this object.
  std::vector<std::pair<std::string_view, uint64_t>> sorted() const;

 private:
  struct Entry {
    const char* bytes = nullptr;  // nullptr: empty
    uint32_t length = 0, tag = 0;
    uint64_t count = 0;
  };
  void add_text(Splitter splitter, std::string_view text);
  void add_piece(std::string_view piece, uint64_t hash, uint64_t count);
  const char* keep(std::string_view piece);
  void grow();

  std::vector<Entry> entries_;  // open addressing, at most half full
  size_t used_ = 0;
  uint64_t distinct_bytes_ = 0;
  std::vector<std::unique_ptr<char[]>> blocks_;  // the pieces' bytes
  size_t room_ = 0;                              // left at the end of the last block
};

}  // namespace ostro::tokenizer
