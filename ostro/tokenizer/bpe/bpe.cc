#include "ostro/tokenizer/bpe/bpe.h"

#include <algorithm>

#include "ostro/tokenizer/bpe/short_merge.h"

namespace ostro::tokenizer {

// Also finds out whether the ranks ascend: no merge may have a part that a merge of the same or a higher rank
// produces.
void BpeModel::set_merges(std::vector<Merge> by_rank) {
  table_ = MergeTable(by_rank.size());
  for (uint32_t rank = 0; rank < by_rank.size(); ++rank) {
    const Merge& m = by_rank[rank];
    table_.insert(m.left, m.right, {rank, m.result});
  }
  order_ = {std::move(by_rank), true};
  uint32_t ids = 0;
  for (const Merge& m : order_.by_rank) ids = std::max({ids, m.left + 1, m.right + 1, m.result + 1});
  std::vector<uint32_t> last_made(ids, 0);  // rank + 1 of the last merge that produces the token
  for (uint32_t rank = 0; rank < order_.by_rank.size(); ++rank)
    last_made[order_.by_rank[rank].result] = rank + 1;
  for (uint32_t rank = 0; rank < order_.by_rank.size(); ++rank) {
    const Merge& m = order_.by_rank[rank];
    if (std::max(last_made[m.left], last_made[m.right]) > rank) order_.ascending = false;
  }
}

void BpeModel::set_whole_pieces(std::span<const std::string> token_bytes, bool ignore_merges) {
  PieceTable whole(token_bytes.size());
  BpeScratch scratch;
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < token_bytes.size(); ++id) {
    if (token_bytes[id].empty()) continue;
    if (!ignore_merges) {
      ids.clear();
      encode(token_bytes[id], scratch, ids);
      if (ids.size() != 1 || ids[0] != id) continue;
    }
    whole.insert(token_bytes[id], id);
  }
  whole_ = std::move(whole);
}

// In this order: a piece that is one token, a short row by vectors (short_merge.h), a long row in windows
// (window_merge.h), where windows of more than kShortRow ids go to LongMerge.
void BpeModel::encode(std::string_view piece, BpeScratch& scratch, std::vector<uint32_t>& out) const {
  if (const uint32_t id = whole_.find(piece); id != kNoToken) {
    out.push_back(id);
    return;
  }
  std::vector<uint32_t>& row = scratch.ids;
  row.clear();
  for (const char byte : piece) {
    const uint32_t id = byte_ids[static_cast<uint8_t>(byte)];
    if (id != kNoToken) row.push_back(id);
  }
  if (row.size() <= kShortRow) return append_merged(table_, row, out);
  const auto merge_long = [&](std::span<const uint32_t> window, MergedRow& merged) {
    scratch.long_merge.run(table_, order_, window, merged);
  };
  scratch.windows.run(table_, row, merge_long, out);
}

}  // namespace ostro::tokenizer
