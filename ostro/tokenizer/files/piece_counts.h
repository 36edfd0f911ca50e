// PieceCounts: counts how often each piece occurs in a set of documents. BPE training needs nothing else of
// the text.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/tokenizer/split/splitter.h"

namespace ostro::tokenizer {

// Counts of pieces. Counts are exact integers, so the sum of the counts of several threads does not depend on
// their order. Memory grows with the number of distinct pieces, not with the text. Not thread-safe; each
// thread has its own.
class PieceCounts {
 public:
  PieceCounts();

  // Adds every piece of a document (malformed bytes are read as U+FFFD).
  void add_document(Splitter splitter, std::string_view document);

  // Adds the counts of another thread.
  void add(const PieceCounts& other);

  // Total size of all distinct pieces in bytes.
  uint64_t distinct_bytes() const { return distinct_bytes_; }

  // All pieces with their counts, sorted by their bytes. The views point into this object.
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
  size_t room_ = 0;                              // free bytes in the last block
};

}  // namespace ostro::tokenizer
