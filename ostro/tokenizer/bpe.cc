#include "ostro/tokenizer/bpe.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>

namespace ostro::tokenizer {
namespace {

constexpr size_t kShortPiece = 64;  // a bit per id in one word; up to here a scan for the best pair wins

// The smallest of `blocks` times eight numbers.
uint32_t smallest(const uint32_t* keys, size_t blocks) {
  const auto* p = reinterpret_cast<const __m256i*>(keys);
  __m256i least = _mm256_load_si256(p);
  for (size_t i = 1; i < blocks; ++i) least = _mm256_min_epu32(least, _mm256_load_si256(p + i));
  __m128i half = _mm_min_epu32(_mm256_castsi256_si128(least), _mm256_extracti128_si256(least, 1));
  half = _mm_min_epu32(half, _mm_shuffle_epi32(half, 0b01'00'11'10));
  half = _mm_min_epu32(half, _mm_shuffle_epi32(half, 0b10'11'00'01));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(half));
}

}  // namespace

void BpeModel::set_merges(std::vector<Merge> by_rank) {
  table_ = MergeTable(by_rank);
  order_ = {std::move(by_rank), true};
  uint32_t ids = 0;
  for (const Merge& m : order_.by_rank) ids = std::max({ids, m.left + 1, m.right + 1, m.result + 1});
  std::vector<uint32_t> last_made(ids, 0);  // rank + 1 of the last merge that makes a token
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

void BpeModel::encode(std::string_view piece, BpeScratch& scratch, std::vector<uint32_t>& out) const {
  if (const uint32_t id = whole_.find(piece); id != kNoToken) {
    out.push_back(id);
    return;
  }
  if (piece.size() <= kShortPiece) {
    uint32_t ids[kShortPiece], merged[kShortPiece];
    size_t count = 0;
    for (const char byte : piece) {
      ids[count] = byte_ids[static_cast<uint8_t>(byte)];
      count += ids[count] != kNoToken;
    }
    out.insert(out.end(), merged, merged + merge_short(ids, count, merged));
    return;
  }
  std::vector<uint32_t>& ids = scratch.ids;
  ids.clear();
  for (const char byte : piece) {
    const uint32_t id = byte_ids[static_cast<uint8_t>(byte)];
    if (id != kNoToken) ids.push_back(id);
  }
  scratch.long_merge.run(table_, order_, ids);
  out.insert(out.end(), ids.begin(), ids.end());
}

void BpeModel::merge(std::vector<uint32_t>& ids, BpeScratch& scratch) const {
  if (ids.size() > kShortPiece) return scratch.long_merge.run(table_, order_, ids);
  uint32_t merged[kShortPiece];
  ids.assign(merged, merged + merge_short(ids.data(), ids.size(), merged));
}

// Rank and place of a pair in one number, so that the smallest is the pair to join next.
size_t BpeModel::merge_short(const uint32_t* from, size_t count, uint32_t* out) const {
  if (count == 0) return 0;
  constexpr uint32_t kNoPair = 0xFFFFFFFF;
  alignas(32) uint32_t keys[kShortPiece];
  uint32_t ids[kShortPiece], results[kShortPiece];
  const size_t blocks = (count + 7) / 8;
  const auto look_up = [&](size_t i, size_t next) {
    const MergeTable::Found found = table_.find(ids[i], ids[next]);
    keys[i] = found.rank == kNoToken ? kNoPair : found.rank << 6 | static_cast<uint32_t>(i);
    results[i] = found.result;
  };
  std::copy(from, from + count, ids);
  for (size_t i = 0; i + 1 < count; ++i) look_up(i, i + 1);
  std::fill(keys + count - 1, keys + blocks * 8, kNoPair);

  uint64_t alive = ~uint64_t{0} >> (64 - count);  // a bit per id that has not been joined to one before it
  for (uint32_t key; (key = smallest(keys, blocks)) != kNoPair;) {
    const size_t i = key & 63;
    const uint64_t before = alive & ((uint64_t{1} << i) - 1);
    uint64_t after = alive & (~uint64_t{1} << i);
    const auto joined = static_cast<size_t>(std::countr_zero(after));
    after &= after - 1;
    alive &= ~(uint64_t{1} << joined);
    keys[joined] = kNoPair;
    ids[i] = results[i];
    if (after != 0) {
      look_up(i, static_cast<size_t>(std::countr_zero(after)));
    } else {
      keys[i] = kNoPair;
    }
    if (before != 0) look_up(static_cast<size_t>(63 - std::countl_zero(before)), i);
  }
  size_t n = 0;
  for (; alive != 0; alive &= alive - 1) out[n++] = ids[std::countr_zero(alive)];
  return n;
}

}  // namespace ostro::tokenizer
