// merge_short: BPE merges of a short row of ids. A vector minimum over rank and position finds the pair to
// merge next. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ostro/tokenizer/bpe/merge_table.h"

namespace ostro::tokenizer {

inline constexpr size_t kShortRow = 64;  // one bit per id in a 64-bit word

// Merges a row of at most kShortRow ids until no pair has a merge. The lowest rank goes first; of equal ranks
// the leftmost. Bit i of the result is set if a token begins at position i; ids[i] is this token.
uint64_t merge_short(const MergeTable& table, std::span<const uint32_t> row, uint32_t (&ids)[kShortRow]);

// Merges a row as merge_short does, and appends the tokens to `out`.
void append_merged(const MergeTable& table, std::span<const uint32_t> row, std::vector<uint32_t>& out);

}  // namespace ostro::tokenizer
