// document_stats: figures about the quality of one text that do not depend on its language.
#pragma once

#include <cstdint>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/corpus_check/histogram.h"

namespace ostro::corpus_check {

// The figures of one document.
struct DocumentStats {
  int64_t bytes = 0, characters = 0, words = 0;
  int64_t tokens = -1;  // negative: not counted
  // Shares of all characters, 0 to 1.
  double letters = 0, digits = 0, spaces = 0, symbols = 0, non_ascii = 0;
  double mean_word_length = 0;  // a word here: characters between white space
  double symbol_ratio = 0;      // number signs (#) and ellipses per word
  double repeated_lines = 0;    // share of bytes in non-blank lines that repeat an earlier line
  double compressed = 0;        // compressed size (zstd) / size: low for repetitive text, near 1 for noise
};

// Returns the figures of `text`, which must be valid UTF-8 and not empty. Does not set `tokens` and
// `compressed`.
DocumentStats text_stats(std::string_view text);
// The same with `compressed`. Error: the text cannot be compressed.
Result<DocumentStats> document_stats(std::string_view text);

// A histogram of each figure, over many documents.
struct StatsHistograms {
  struct Entry {
    const char* name;
    const char* unit;
    double (*value)(const DocumentStats&);
    Histogram histogram;
  };
  std::vector<Entry> entries;

  StatsHistograms();
  void add(const DocumentStats& stats);
};

}  // namespace ostro::corpus_check
