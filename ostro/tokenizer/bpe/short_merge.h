// BPE merges of short rows: a vector minimum over rank and place finds the pair to join next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ostro/tokenizer/bpe/merge_table.h"

namespace ostro::tokenizer {

inline constexpr size_t kShortRow = 64;  // a bit per id in one word

// Joins pairs in a row of at most kShortRow ids, lowest rank first, the leftmost of equals, until no pair
// joins. Bit i of the result says that a token begins at place i; it is ids[i] then.
uint64_t merge_short(const MergeTable& table, std::span<const uint32_t> row, uint32_t (&ids)[kShortRow]);

// The same, appending the tokens.
void append_merged(const MergeTable& table, std::span<const uint32_t> row, std::vector<uint32_t>& out);

}  // namespace ostro::tokenizer
