// Figures about a token store for people: counts, lengths of rows.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ostro/data/store/token_store.h"

namespace ostro::data {

// How long the rows of a split are, in tokens.
struct LengthStats {
  int64_t rows = 0, tokens = 0;
  int64_t shortest = 0, longest = 0;
  int64_t empty = 0;  // rows without tokens
  // Quantiles 1, 10, 50, 90 and 99 %: exact up to 4,095 tokens, above that to one part in 64, rounded down.
  std::array<int64_t, 5> quantiles{};
  // Rows of [2^i, 2^(i+1)) tokens; rows without tokens count with the first.
  std::array<int64_t, 63> by_power{};
};
inline constexpr int kLengthQuantiles[] = {1, 10, 50, 90, 99};

// Reads the offsets of a split, in memory that does not grow with it.
Result<LengthStats> length_stats(const TokenStream& stream);

// Counts of source files over a whole store.
struct FileCounts {
  int64_t files = 0, file_bytes = 0, documents = 0, empty = 0, repaired = 0, no_loss = 0, skipped = 0;
};
FileCounts file_counts(std::span<const FileLedger> files);

}  // namespace ostro::data
