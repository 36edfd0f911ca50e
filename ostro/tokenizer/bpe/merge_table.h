// MergeTable: the merges of a BPE model, as a hash table from a pair of tokens to its rank and result. A
// bucket is one cache line, and the table is at most half full. A lookup has no branch that depends on what
// it finds.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ostro::tokenizer {

inline constexpr uint32_t kNoToken = 0xFFFFFFFF;

// Does not change after the last insert(), so threads may then share it.
class MergeTable {
 public:
  struct Found {
    uint32_t rank = kNoToken;  // kNoToken: this pair has no merge
    uint32_t result = 0;
  };

  // A table with room for `count` pairs; at most so many different pairs may be inserted.
  explicit MergeTable(size_t count = 0);

  // Sets the merge of a pair; a later call replaces an earlier one. Several pairs may have the same rank, as
  // in SentencePiece. The process aborts for a rank of 2^26 - 1 or more.
  void insert(uint32_t left, uint32_t right, Found found);

  // The merge of a pair. `rank` is kNoToken if it has none.
  Found find(uint32_t left, uint32_t right) const {
    const uint64_t key = key_of(left, right);
    const __m256i wanted = _mm256_set1_epi64x(static_cast<int64_t>(key));
    const uint64_t h = hash(key);
    for (size_t i = may_hold(h) ? slot(h) : mask_ + 1;; i = (i + 1) & mask_) {
      const Bucket& bucket = buckets_[i];
      const __m256i equal =
          _mm256_cmpeq_epi64(_mm256_load_si256(reinterpret_cast<const __m256i*>(bucket.keys)), wanted);
      const __m256i both =
          _mm256_and_si256(_mm256_load_si256(reinterpret_cast<const __m256i*>(bucket.found)), equal);
      const __m128i half = _mm_or_si128(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
      const auto found =
          static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_or_si128(half, _mm_unpackhi_epi64(half, half))));
      if ((found == 0) & (bucket.keys[kPairs - 1] != kEmpty)) [[unlikely]]
        continue;
      return {static_cast<uint32_t>(found) - 1, static_cast<uint32_t>(found >> 32)};
    }
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static constexpr size_t kPairs = 4;
  struct alignas(64) Bucket {
    uint64_t keys[kPairs] = {kEmpty, kEmpty, kEmpty, kEmpty};  // filled from the left
    uint64_t found[kPairs] = {};                               // low half: rank + 1; high half: result
  };
  static uint64_t key_of(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
  // Use the high bits of this product: they depend on both tokens.
  static uint64_t hash(uint64_t key) { return key * 0x9E3779B97F4A7C15u; }
  size_t slot(uint64_t hash) const { return (hash >> 32) & mask_; }
  size_t filter_bit(uint64_t hash) const { return (hash >> 40) & filter_mask_; }
  bool may_hold(uint64_t hash) const {
    const size_t bit = filter_bit(hash);
    return (filter_[bit / 64] >> bit % 64 & 1) != 0;
  }

  std::vector<Bucket> buckets_;  // one extra bucket at the end, which is always empty
  size_t mask_ = 0;
  // A filter with one bit per hash, at most an eighth of them set. Most pairs that are looked up have no
  // merge. The filter fits into a cache level where the buckets do not fit.
  std::vector<uint64_t> filter_;
  size_t filter_mask_ = 0;
};

}  // namespace ostro::tokenizer
