// How often each piece occurs in a set of documents: all that BPE training needs to know of the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ostro/tokenizer/splitter.h"

namespace ostro::tokenizer {

// Counts of pieces; counts are exact integers, so adding up per-thread counts in any order gives the same.
class PieceCounts {
 public:
  // Adds every piece of a document (malformed bytes are read as U+FFFD).
  void add_document(Splitter splitter, std::string_view document);

  void add(const PieceCounts& other);

  // All pieces with their counts, in the order of their bytes.
  std::vector<std::pair<std::string_view, uint64_t>> sorted() const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  void add_piece(std::string_view piece, uint64_t count);

  std::unordered_map<std::string, uint64_t, Hash, std::equal_to<>> counts_;
};

}  // namespace ostro::tokenizer
