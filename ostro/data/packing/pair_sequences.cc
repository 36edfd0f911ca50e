#include "ostro/data/packing/pair_sequences.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/check.h"
#include "ostro/data/sources/pair_parts.h"

namespace ostro::data {

PairSequences::PairSequences(std::shared_ptr<const TokenStore> store, Split split, int64_t text_len)
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
  out.rejected = std::find_if(out.parts.begin(), out.parts.end(), is_rejected_part) - out.parts.begin();
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
      batch.loss_mask[to] = there && is_answer_part(pair.parts[from + 1]) ? 1.0f : 0.0f;
      if (!batch.segment_ids.empty()) batch.segment_ids[to] = there ? 0 : 1;
    }
  }
  batch.sequences[static_cast<size_t>(row)] = sequence;
  return {};
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

}  // namespace ostro::data
