// How the rows of a store are packed into sequences (docs/data.md, "Packed sequences").
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ostro/data/store/token_store.h"

namespace ostro::data {

// Which part of a row that is too long for a sequence is kept.
enum class Keep { kLeft, kRight };

// How rows become sequences. A row of n tokens has n - 1 targets and takes as many positions, at most
// seq_len; a row without targets takes none.
struct PackRule {
  int64_t seq_len = 0;
  Keep keep = Keep::kLeft;
  bool pack = true;  // false: one row a sequence
  // Positions that a row of so many tokens takes.
  int64_t positions(int64_t tokens) const;
  // Its first token that is kept.
  int64_t first_token(int64_t tokens) const;
  bool operator==(const PackRule&) const = default;
};

struct PackCounts {
  int64_t sequences = 0;
  int64_t cut_rows = 0;    // longer than a sequence
  int64_t cut_tokens = 0;  // of them, not in any sequence
  int64_t empty_rows = 0;  // without targets
  bool operator==(const PackCounts&) const = default;
};

// Calls `start` with the first row of every sequence, in order. Greedy: the rows in stored order, each in the
// sequence of the row before it as long as it fits. Reads the ends of the rows once, in bounded memory.
Result<PackCounts> for_each_sequence(const TokenStream& stream, const PackRule& rule,
                                     const std::function<Status(int64_t)>& start);

// The counts alone.
Result<PackCounts> count_packs(const TokenStream& stream, const PackRule& rule);

// What is left out, for people: "rows longer than a sequence: 12, which lose 345 tokens"; empty when nothing
// is.
std::string left_out_text(const PackCounts& counts);

}  // namespace ostro::data
