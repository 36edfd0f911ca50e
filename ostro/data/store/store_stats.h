// LengthStats, FileCounts: counts and lengths of a token store's rows, for a person to read. Errors are those
// of reading the store.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "ostro/data/store/token_store.h"

namespace ostro::data {

// How long the rows of a split are, in tokens.
struct LengthStats {
  int64_t rows = 0, tokens = 0;
  int64_t shortest = 0, longest = 0;
  int64_t empty = 0;  // rows without tokens
  // Quantiles 1, 10, 50, 90 and 99 %. Exact up to 4,095 tokens; above that rounded down, by less than 1/64.
  std::array<int64_t, 5> quantiles{};
  // by_power[i]: how many rows have [2^i, 2^(i+1)) tokens. Empty rows count in by_power[0].
  std::array<int64_t, 63> by_power{};
};
inline constexpr int kLengthQuantiles[] = {1, 10, 50, 90, 99};

// Reads the row ends of a split, in constant memory.
Result<LengthStats> length_stats(const TokenStream& stream);

// The counts of all source files of a store, added up.
struct FileCounts {
  int64_t files = 0, file_bytes = 0, documents = 0, empty = 0, repaired = 0, no_loss = 0, skipped = 0;
  std::map<std::string, int64_t> left_out;  // by reason
};
FileCounts file_counts(std::span<const FileLedger> files);

}  // namespace ostro::data
