#include "ostro/batches/packing/packed_sequences.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/check.h"

namespace ostro::batches {

// Repeats the packing of the sequence's rows from their ends: rows without targets take no part, long ones
// are cut as the rule says. More positions than a sequence has mean a damaged index.
Result<std::vector<PackedSequences::Part>> PackedSequences::parts(int64_t sequence) const {
  ASSIGN_OR_RETURN(const auto rows, index_->rows(sequence));
  ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream().row_ends(rows.first, rows.second - rows.first));
  const PackRule& rule = index_->rule();
  std::vector<Part> parts;
  int64_t position = 0;
  for (int64_t row = rows.first; row < rows.second; ++row) {
    const auto i = static_cast<size_t>(row - rows.first);
    const int64_t tokens = ends[i + 1] - ends[i];
    ASSIGN_OR_RETURN(const int64_t count, kept_positions(stream(), rule, ends[i], ends[i + 1]));
    if (count == 0) continue;
    const int64_t first_token = rule.first_token(tokens);
    parts.push_back({row, position, count, ends[i] + first_token, first_token});
    position += count;
  }
  if (position > seq_len())
    return corrupt(
        fmt::format("{}: the rows of packed sequence {} have {} targets, more than {}; delete its "
                    "packs folder to make the index again",
                    stream().name(), sequence, position, seq_len()));
  return parts;
}

Status PackedSequences::read(int64_t sequence, Batch& batch, int64_t row) const {
  OSTRO_CHECK(!batch.segment_ids.empty(), "{}: packed rows in a batch without segments", stream().name());
  ASSIGN_OR_RETURN(const std::vector<Part> parts, this->parts(sequence));
  const auto at = static_cast<size_t>(row * seq_len());
  int32_t segment = 0;
  size_t used = 0;
  for (const Part& part : parts) {
    const auto count = static_cast<size_t>(part.count), begin = at + used;
    const auto places = [&](auto& array) { return std::span(array).subspan(begin, count); };
    RETURN_IF_ERROR(stream().read_pairs(part.first, places(batch.tokens), places(batch.targets)));
    RETURN_IF_ERROR(stream().read_weights(part.first + 1, places(batch.loss_mask)));
    std::fill_n(batch.segment_ids.begin() + static_cast<int64_t>(begin), count, segment++);
    used += count;
  }
  pad_row(batch, row, static_cast<int64_t>(used), segment);
  batch.sequences[static_cast<size_t>(row)] = sequence;
  return {};
}

Result<std::vector<DocumentSpan>> PackedSequences::documents(int64_t sequence) const {
  ASSIGN_OR_RETURN(const std::vector<Part> parts, this->parts(sequence));
  std::vector<DocumentSpan> spans;
  for (const Part& part : parts) {
    ASSIGN_OR_RETURN(DocumentSpan span,
                     span_of(part.row, part.begin, part.begin + part.count, part.first_token));
    spans.push_back(std::move(span));
  }
  return spans;
}

Result<std::vector<RowPart>> PackedSequences::parts_of(int64_t row) const {
  ASSIGN_OR_RETURN(const std::optional<int64_t> sequence, index_->sequence_of(row));
  std::vector<RowPart> found;
  if (!sequence) return found;
  ASSIGN_OR_RETURN(const std::vector<Part> parts, this->parts(*sequence));
  for (const Part& part : parts)
    if (part.row == row)
      found.push_back({*sequence, part.begin, part.begin + part.count, part.begin, part.begin + part.count,
                       part.first_token});
  return found;
}

}  // namespace ostro::batches
