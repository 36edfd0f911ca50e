#include "ostro/tokenizer/piece_counts.h"

#include <algorithm>

#include "ostro/tokenizer/utf8.h"

namespace ostro::tokenizer {

void PieceCounts::add_piece(std::string_view piece, uint64_t count) {
  const auto it = counts_.find(piece);
  if (it != counts_.end()) {
    it->second += count;
  } else {
    counts_.emplace(piece, count);
  }
}

void PieceCounts::add_document(Splitter splitter, std::string_view document) {
  const auto add = [this](std::string_view piece) { add_piece(piece, 1); };
  if (is_valid_utf8(document)) {
    for_each_piece(splitter, document, add);
  } else {
    for_each_piece(splitter, repair_utf8(document), add);
  }
}

void PieceCounts::add(const PieceCounts& other) {
  for (const auto& [piece, count] : other.counts_) add_piece(piece, count);
}

std::vector<std::pair<std::string_view, uint64_t>> PieceCounts::sorted() const {
  std::vector<std::pair<std::string_view, uint64_t>> out(counts_.begin(), counts_.end());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace ostro::tokenizer
