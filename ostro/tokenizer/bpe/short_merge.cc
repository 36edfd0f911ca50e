#include "ostro/tokenizer/bpe/short_merge.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>

namespace ostro::tokenizer {
namespace {

constexpr uint32_t kNoPair = kNoToken << 6;  // this value and above: no pair

// Rank and position of each pair in one number, so the smallest number is the pair to merge next. The numbers
// stay in registers: reading a vector right after writing one of its elements would wait for the store.
template <size_t kBlocks>
class PairKeys {
 public:
  explicit PairKeys(const uint32_t* keys) {
    for (size_t i = 0; i < kBlocks; ++i)
      blocks_[i] = _mm256_load_si256(reinterpret_cast<const __m256i*>(keys) + i);
  }

  void set(size_t place, uint32_t key) {
    const __m256i at = _mm256_sub_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                        _mm256_set1_epi32(static_cast<int>(place)));
    const __m256i value = _mm256_set1_epi32(static_cast<int>(key));
#pragma GCC unroll 8
    for (size_t i = 0; i < kBlocks; ++i) {
      const __m256i here = _mm256_cmpeq_epi32(at, _mm256_set1_epi32(-8 * static_cast<int>(i)));
      blocks_[i] = _mm256_blendv_epi8(blocks_[i], value, here);
    }
  }

  uint32_t smallest() const {
    __m256i least = blocks_[0];
#pragma GCC unroll 8
    for (size_t i = 1; i < kBlocks; ++i) least = _mm256_min_epu32(least, blocks_[i]);
    __m128i half = _mm_min_epu32(_mm256_castsi256_si128(least), _mm256_extracti128_si256(least, 1));
    half = _mm_min_epu32(half, _mm_shuffle_epi32(half, 0b01'00'11'10));
    half = _mm_min_epu32(half, _mm_shuffle_epi32(half, 0b10'11'00'01));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(half));
  }

 private:
  __m256i blocks_[kBlocks];
};

// Merges in place: a merge writes its result to the left position and clears the right one's bit in `alive`,
// so the neighbours of a position are the nearest bits on both sides. Each merge looks up the two pairs
// beside it.
template <size_t kBlocks>
uint64_t merge_blocks(const MergeTable& table, std::span<const uint32_t> row, uint32_t* ids) {
  const size_t count = row.size();
  uint32_t results[kBlocks * 8];
  alignas(32) uint32_t start[kBlocks * 8];
  const auto look_up = [&](size_t i, size_t next) {
    const MergeTable::Found found = table.find(ids[i], ids[next]);
    results[i] = found.result;
    return found.rank << 6 | static_cast<uint32_t>(i);
  };
  std::copy(row.begin(), row.end(), ids);
  for (size_t i = 0; i + 1 < count; ++i) start[i] = look_up(i, i + 1);
  std::fill(start + count - 1, start + kBlocks * 8, kNoPair);

  PairKeys<kBlocks> keys(start);
  // one bit per id that has not been merged into the one before it
  uint64_t alive = ~uint64_t{0} >> (64 - count);
  for (uint32_t key; (key = keys.smallest()) < kNoPair;) {
    const size_t i = key & 63;
    const uint64_t before = alive & ((uint64_t{1} << i) - 1);
    uint64_t after = alive & (~uint64_t{1} << i);
    const auto joined = static_cast<size_t>(std::countr_zero(after));
    after &= after - 1;
    alive &= ~(uint64_t{1} << joined);
    ids[i] = results[i];
    keys.set(joined, kNoPair);
    keys.set(i, after == 0 ? kNoPair : look_up(i, static_cast<size_t>(std::countr_zero(after))));
    if (before != 0) {
      const auto previous = static_cast<size_t>(63 - std::countl_zero(before));
      keys.set(previous, look_up(previous, i));
    }
  }
  return alive;
}

}  // namespace

uint64_t merge_short(const MergeTable& table, std::span<const uint32_t> row, uint32_t (&ids)[kShortRow]) {
  if (row.empty()) return 0;
  if (row.size() <= 8) return merge_blocks<1>(table, row, ids);
  if (row.size() <= 16) return merge_blocks<2>(table, row, ids);
  if (row.size() <= 32) return merge_blocks<4>(table, row, ids);
  return merge_blocks<8>(table, row, ids);
}

void append_merged(const MergeTable& table, std::span<const uint32_t> row, std::vector<uint32_t>& out) {
  uint32_t ids[kShortRow];
  size_t count = 0;
  for (uint64_t alive = merge_short(table, row, ids); alive != 0; alive &= alive - 1)
    ids[count++] = ids[std::countr_zero(alive)];
  out.insert(out.end(), ids, ids + count);
}

}  // namespace ostro::tokenizer
