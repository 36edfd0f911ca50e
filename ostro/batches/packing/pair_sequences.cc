#include "ostro/batches/packing/pair_sequences.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/check.h"
#include "ostro/data/sources/pair_parts.h"

namespace ostro::batches {

PairSequences::PairSequences(std::shared_ptr<const data::TokenStore> store, data::Split split,
                             int64_t text_len)
    : SequenceReader(std::move(store), split, 2 * text_len), text_len_(text_len) {
  OSTRO_CHECK(text_len >= 1, "texts of {} tokens", text_len);
}

int64_t PairSequences::sequences(bool) const { return stream().rows(); }

// The weights of a preference row are the parts of its tokens; the first token of a rejected part divides the
// two texts.
Result<PairSequences::Pair> PairSequences::pair(int64_t sequence) const {
  ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream().row_ends(sequence, 1));
  Pair out;
  out.ids.resize(static_cast<size_t>(ends[1] - ends[0]));
  out.parts.resize(out.ids.size());
  RETURN_IF_ERROR(stream().read(ends[0], out.ids));
  RETURN_IF_ERROR(stream().read_weights(ends[0], out.parts));
  out.rejected = std::find_if(out.parts.begin(), out.parts.end(), data::is_rejected_part) - out.parts.begin();
  if (out.rejected == 0 || out.rejected == static_cast<int64_t>(out.ids.size()))
    return corrupt(
        fmt::format("{}: row {} does not hold two texts; build the store again", stream().name(), sequence));
  return out;
}

int64_t PairSequences::targets(const std::pair<int64_t, int64_t>& text) const {
  return std::min(text.second - text.first - 1, text_len_);
}

Status PairSequences::read(int64_t sequence, Batch& batch, int64_t row) const {
  ASSIGN_OR_RETURN(const Pair pair, this->pair(sequence));
  for (int64_t side = 0; side < 2; ++side) {
    const auto text = pair.text(side);
    const int64_t at = row * seq_len() + side * text_len_, count = targets(text);
    for (int64_t i = 0; i < text_len_; ++i) {
      const auto to = static_cast<size_t>(at + i), from = static_cast<size_t>(text.first + i);
      const bool there = i < count;
      batch.tokens[to] = there ? pair.ids[from] : 0;
      batch.targets[to] = there ? pair.ids[from + 1] : 0;
      batch.loss_mask[to] = there && data::is_answer_part(pair.parts[from + 1]) ? 1.0f : 0.0f;
      if (!batch.segment_ids.empty()) batch.segment_ids[to] = there ? 0 : 1;
    }
  }
  batch.sequences[static_cast<size_t>(row)] = sequence;
  return {};
}

Result<PackCounts> PairSequences::packing() const {
  constexpr int64_t kRows = 65536;
  PackCounts counts;
  counts.sequences = stream().rows();
  for (int64_t begin = 0; begin < stream().rows(); begin += kRows) {
    const int64_t count = std::min(kRows, stream().rows() - begin);
    ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream().row_ends(begin, count));
    for (int64_t i = 0; i < count; ++i) {
      if (ends[static_cast<size_t>(i) + 1] - ends[static_cast<size_t>(i)] <= text_len_ + 2) continue;
      ASSIGN_OR_RETURN(const Pair pair, this->pair(begin + i));
      count_cut(pair, counts);
    }
  }
  return counts;
}

// Adds what is lost of a pair.
void PairSequences::count_cut(const Pair& pair, PackCounts& counts) const {
  int64_t lost = 0;
  bool counts_both = true;
  std::vector<int32_t> kept[2];
  for (int64_t side = 0; side < 2; ++side) {
    const auto text = pair.text(side);
    const int64_t end = text.first + targets(text) + 1;
    lost += text.second - end;
    counts_both &=
        std::any_of(pair.parts.begin() + text.first + 1, pair.parts.begin() + end, data::is_answer_part);
    kept[side].assign(pair.ids.begin() + text.first, pair.ids.begin() + end);
  }
  if (lost == 0) return;
  ++counts.cut_rows;
  counts.cut_tokens += lost;
  counts.lost_rows += counts_both ? 0 : 1;
  counts.equal_pairs += counts_both && kept[0] == kept[1] ? 1 : 0;
}

Result<std::vector<DocumentSpan>> PairSequences::documents(int64_t sequence) const {
  ASSIGN_OR_RETURN(const Pair pair, this->pair(sequence));
  std::vector<DocumentSpan> spans;
  for (int64_t side = 0; side < 2; ++side) {
    const auto text = pair.text(side);
    const int64_t begin = side * text_len_;
    if (targets(text) < 1) continue;
    ASSIGN_OR_RETURN(DocumentSpan span, span_of(sequence, begin, begin + targets(text), text.first));
    spans.push_back(std::move(span));
  }
  return spans;
}

Result<std::vector<RowPart>> PairSequences::parts_of(int64_t row) const {
  ASSIGN_OR_RETURN(const std::vector<DocumentSpan> spans, documents(row));
  std::vector<RowPart> parts;
  for (const DocumentSpan& span : spans)
    parts.push_back({row, span.begin, span.end, span.begin, span.end, span.first_token});
  return parts;
}

}  // namespace ostro::batches
