#include "ostro/tokenizer/merge_table.h"

#include <bit>

#include "ostro/base/check.h"

namespace ostro::tokenizer {

MergeTable::MergeTable(const std::vector<Merge>& by_rank)
    : entries_(std::bit_ceil(2 * by_rank.size() + 2)), mask_(entries_.size() - 1) {
  OSTRO_CHECK(by_rank.size() < (1u << 26) - 1, "a BPE model of {} merges: at most 2^26 - 2 have room",
              by_rank.size());
  for (uint32_t rank = 0; rank < by_rank.size(); ++rank) {
    const Merge& merge = by_rank[rank];
    const uint64_t key = uint64_t{merge.left} << 32 | merge.right;
    size_t i = slot(key);
    while (entries_[i].key != kEmpty && entries_[i].key != key) i = (i + 1) & mask_;
    entries_[i] = {key, {rank, merge.result}};
  }
}

}  // namespace ostro::tokenizer
