// Figures of one text that hint at its quality and need no language.
#pragma once

#include <cstdint>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/data/check/histogram.h"

namespace ostro::data {

struct DocumentStats {
  int64_t bytes = 0, characters = 0, words = 0;
  int64_t tokens = -1;  // negative: not counted
  // Shares of the characters.
  double letters = 0, digits = 0, spaces = 0, symbols = 0, non_ascii = 0;
  double mean_word_length = 0;  // characters between white space
  double symbol_ratio = 0;      // # and ellipses, for each word
  double repeated_lines = 0;    // share of bytes in lines (not blank) that stood before
  double compressed = 0;        // size by zstd over size: low for repetitive text, near 1 for noise
};

// `text` must be valid UTF-8 and not empty. `tokens` is left alone.
Result<DocumentStats> document_stats(std::string_view text);

// One distribution of each figure.
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

}  // namespace ostro::data
