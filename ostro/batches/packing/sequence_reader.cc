#include "ostro/batches/packing/sequence_reader.h"

#include <algorithm>
#include <span>

#include "ostro/base/check.h"

namespace ostro::batches {

Result<DocumentSpan> SequenceReader::span_of(int64_t row, int64_t begin, int64_t end,
                                             int64_t first_token) const {
  ASSIGN_OR_RETURN(data::RowSource source, stream().source(row));
  return DocumentSpan{std::move(source), row, begin, end, first_token};
}

StreamSequences::StreamSequences(std::shared_ptr<const data::TokenStore> store, data::Split split,
                                 int64_t seq_len, bool by_document)
    : SequenceReader(std::move(store), split, seq_len), by_document_(by_document) {
  OSTRO_CHECK(seq_len >= 1, "sequences of {} tokens", seq_len);
}

int64_t StreamSequences::sequences(bool whole) const {
  const int64_t targets = std::max<int64_t>(stream().tokens() - 1, 0);
  return whole ? targets / seq_len() : targets / seq_len() + (targets % seq_len() != 0 ? 1 : 0);
}

int64_t StreamSequences::count(int64_t sequence) const {
  OSTRO_CHECK(sequence >= 0 && sequence < sequences(false), "{}: sequence {} of {}", stream().name(),
              sequence, sequences(false));
  return std::min(seq_len(), stream().tokens() - 1 - sequence * seq_len());
}

Status StreamSequences::read(int64_t sequence, Batch& batch, int64_t row) const {
  const int64_t first = sequence * seq_len(), targets = count(sequence);
  const int64_t at = row * seq_len();
  const auto part = [&](auto& array) {
    return std::span(array).subspan(static_cast<size_t>(at), static_cast<size_t>(targets));
  };
  RETURN_IF_ERROR(stream().read_pairs(first, part(batch.tokens), part(batch.targets)));
  RETURN_IF_ERROR(stream().read_weights(first + 1, part(batch.loss_mask)));
  int32_t segment = 0;
  if (!batch.segment_ids.empty()) {
    if (by_document_) {
      ASSIGN_OR_RETURN(const std::vector<data::RowSpan> rows, stream().rows_of(first, targets));
      for (const data::RowSpan& span : rows) {
        const int64_t begin = std::max(span.begin, first) - first, end = std::min(span.end - first, targets);
        std::fill_n(batch.segment_ids.begin() + at + begin, end - begin, segment++);
      }
    } else {
      std::fill_n(batch.segment_ids.begin() + at, targets, segment++);
    }
  }
  pad_row(batch, row, targets, segment);
  batch.sequences[static_cast<size_t>(row)] = sequence;
  return {};
}

Result<std::vector<DocumentSpan>> StreamSequences::documents(int64_t sequence) const {
  const int64_t first = sequence * seq_len(), targets = count(sequence);
  ASSIGN_OR_RETURN(const std::vector<data::RowSpan> rows, stream().rows_of(first, targets));
  std::vector<DocumentSpan> spans;
  for (const data::RowSpan& span : rows) {
    const int64_t begin = std::max(span.begin, first);
    ASSIGN_OR_RETURN(DocumentSpan found, span_of(span.row, begin - first, std::min(span.end - first, targets),
                                                 begin - span.begin));
    spans.push_back(std::move(found));
  }
  return spans;
}

// A token is an input of one sequence and a target of the one that has the token before it.
Result<std::vector<RowPart>> StreamSequences::parts_of(int64_t row) const {
  ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream().row_ends(row, 1));
  std::vector<RowPart> parts;
  const int64_t begin = ends[0], end = ends[1], length = seq_len();
  if (begin == end) return parts;
  const int64_t last = std::min((end - 1) / length, sequences(true) - 1);
  for (int64_t sequence = std::max<int64_t>(begin - 1, 0) / length; sequence <= last; ++sequence) {
    const int64_t first = sequence * length;
    const auto at = [&](int64_t token) { return std::clamp<int64_t>(token - first, 0, length); };
    parts.push_back(
        {sequence, at(begin), at(end), at(begin - 1), at(end - 1), std::max<int64_t>(first - begin, 0)});
  }
  return parts;
}

}  // namespace ostro::batches
