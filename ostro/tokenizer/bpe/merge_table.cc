#include "ostro/tokenizer/bpe/merge_table.h"

#include <bit>

#include "ostro/base/check.h"

namespace ostro::tokenizer {

MergeTable::MergeTable(size_t count)
    : buckets_(std::bit_ceil(2 * count / kPairs + 1) + 1),
      mask_(buckets_.size() - 2),
      filter_(std::bit_ceil(count / 8 + 1)),
      filter_mask_(filter_.size() * 64 - 1) {}

void MergeTable::insert(uint32_t left, uint32_t right, Found found) {
  OSTRO_CHECK(found.rank < (1u << 26) - 1, "a merge of rank {}: at most 2^26 - 2 have room", found.rank);
  const uint64_t key = key_of(left, right);
  const uint64_t h = hash(key);
  filter_[filter_bit(h) / 64] |= uint64_t{1} << filter_bit(h) % 64;
  for (size_t i = slot(h);; i = (i + 1) & mask_) {
    Bucket& bucket = buckets_[i];
    for (size_t pair = 0; pair < kPairs; ++pair) {
      if (bucket.keys[pair] != kEmpty && bucket.keys[pair] != key) continue;
      bucket.keys[pair] = key;
      bucket.found[pair] = uint64_t{found.result} << 32 | (found.rank + 1);
      return;
    }
  }
}

}  // namespace ostro::tokenizer
