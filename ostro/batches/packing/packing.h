// PackRule, for_each_sequence: the rule by which the rows of a store are packed into sequences
// (docs/spec/batches.md, "Packed sequences"). Errors: those of reading the stream. Any thread may call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ostro/data/store/token_store.h"

namespace ostro::batches {

// The end of a row that is kept when the row is longer than a sequence.
enum class Keep { kLeft, kRight };

// The rule of packing. A row of n tokens has n - 1 targets, and takes that many positions, but at most
// seq_len. A row without targets takes none, and neither does one that is cut to a part without targets.
struct PackRule {
  int64_t seq_len = 0;
  Keep keep = Keep::kLeft;
  bool pack = true;  // false: every row is a sequence of its own
  // Positions that a row of `tokens` tokens takes, if what is kept of it has a target (kept_positions).
  int64_t positions(int64_t tokens) const;
  // The first token that is kept of a row of `tokens` tokens.
  int64_t first_token(int64_t tokens) const;
  bool operator==(const PackRule&) const = default;
};

struct PackCounts {
  int64_t sequences = 0;
  int64_t cut_rows = 0;    // longer than a sequence
  int64_t cut_tokens = 0;  // tokens of these rows that are in no sequence
  int64_t empty_rows = 0;  // without targets
  // Longer than a sequence, and nothing that counts is kept of them. Packed rows of this kind are left out
  // and are not among cut_rows; pairs stay, and do not count.
  int64_t lost_rows = 0, lost_tokens = 0;
  int64_t equal_pairs = 0;  // pairs of answers that are equal as far as they are kept
  bool operator==(const PackCounts&) const = default;
};

// The positions that the row [begin, end) of a stream takes. Reads loss weights only of rows that are cut.
Result<int64_t> kept_positions(const data::TokenStream& stream, const PackRule& rule, int64_t begin,
                               int64_t end);

// Calls `start` with the first row of every sequence, in order. Packing is greedy: it takes rows in stored
// order, and a row joins the sequence of the row before it if it fits, else begins a new one. It reads the
// row ends once, and the weights of rows that are cut, in bounded memory. An error of `start` ends it.
Result<PackCounts> for_each_sequence(const data::TokenStream& stream, const PackRule& rule,
                                     const std::function<Status(int64_t)>& start);

// The counts that for_each_sequence returns, without a call for each sequence.
Result<PackCounts> count_packs(const data::TokenStream& stream, const PackRule& rule);

// The rows and tokens that packing leaves out, for people: "rows longer than a sequence: 12, which lose 345
// tokens". Empty when there are none.
std::string left_out_text(const PackCounts& counts);

}  // namespace ostro::batches
