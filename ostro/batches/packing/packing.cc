#include "ostro/batches/packing/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace ostro::batches {
namespace {

constexpr int64_t kRowsAtATime = 65536;

}  // namespace

Result<int64_t> kept_positions(const data::TokenStream& stream, const PackRule& rule, int64_t begin,
                               int64_t end) {
  const int64_t tokens = end - begin, positions = rule.positions(tokens);
  if (tokens - 1 <= rule.seq_len || stream.weight_kind() == data::WeightKind::kNone) return positions;
  std::vector<float> weights(static_cast<size_t>(positions));
  RETURN_IF_ERROR(stream.read_weights(begin + rule.first_token(tokens) + 1, weights));
  const bool has_target = std::any_of(weights.begin(), weights.end(), [](float w) { return w > 0; });
  return has_target ? positions : 0;
}

// Only one number is carried from row to row: the positions used in the current sequence. It begins as full,
// so that the first row with a target starts a sequence.
Result<PackCounts> for_each_sequence(const data::TokenStream& stream, const PackRule& rule,
                                     const std::function<Status(int64_t)>& start) {
  PackCounts counts;
  int64_t used = rule.seq_len + 1;  // positions used in the current sequence
  for (int64_t row = 0; row < stream.rows(); row += kRowsAtATime) {
    const int64_t count = std::min(kRowsAtATime, stream.rows() - row);
    ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream.row_ends(row, count));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t tokens = ends[static_cast<size_t>(i) + 1] - ends[static_cast<size_t>(i)];
      ASSIGN_OR_RETURN(const int64_t positions, kept_positions(stream, rule, ends[static_cast<size_t>(i)],
                                                               ends[static_cast<size_t>(i) + 1]));
      if (positions == 0) {
        ++(tokens < 2 ? counts.empty_rows : counts.lost_rows);
        counts.lost_tokens += tokens < 2 ? 0 : tokens;
        continue;
      }
      if (tokens - 1 > rule.seq_len) {
        ++counts.cut_rows;
        counts.cut_tokens += tokens - 1 - rule.seq_len;
      }
      if (!rule.pack || used + positions > rule.seq_len) {
        RETURN_IF_ERROR(start(row + i));
        ++counts.sequences;
        used = 0;
      }
      used += positions;
    }
  }
  return counts;
}

Result<PackCounts> count_packs(const data::TokenStream& stream, const PackRule& rule) {
  return for_each_sequence(stream, rule, [](int64_t) { return Status(); });
}

std::string left_out_text(const PackCounts& counts) {
  std::string out;
  if (counts.cut_rows > 0)
    out = fmt::format("rows longer than a sequence: {}, which lose {} tokens", counts.cut_rows,
                      counts.cut_tokens);
  const auto add = [&out](const char* what, int64_t rows) {
    if (rows > 0) out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", what, rows);
  };
  add("rows without a target", counts.empty_rows);
  add("rows longer than a sequence, of which nothing that counts is kept", counts.lost_rows);
  add("pairs whose answers are equal as far as they are kept, from which nothing is learnt",
      counts.equal_pairs);
  return out;
}

int64_t PackRule::positions(int64_t tokens) const {
  return std::min(std::max<int64_t>(tokens - 1, 0), seq_len);
}

int64_t PackRule::first_token(int64_t tokens) const {
  return keep == Keep::kLeft ? 0 : std::max<int64_t>(tokens - 1 - seq_len, 0);
}

}  // namespace ostro::batches
