#include "ostro/tokenizer/bpe/piece_encoder.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "ostro/tokenizer/bpe/piece_key.h"

namespace ostro::tokenizer {
namespace {

constexpr size_t kShortSlots = size_t{1} << 17, kLongSlots = size_t{1} << 14;
constexpr size_t kBatchPieces = 32;  // enough lookups in flight to hide memory latency

}  // namespace

// One cache line. Key and ids are always copied whole, for any length.
struct alignas(64) PieceEncoder::ShortSlot {
  static constexpr size_t kIds = 7;
  alignas(32) char key[kKeyBytes];
  uint32_t ids[kIds];
  uint32_t count;
};

// For long pieces: text without spaces, long words in scripts with three bytes per letter, rows of "----".
struct alignas(64) PieceEncoder::LongSlot {
  static constexpr size_t kIds = 31, kBytes = 127;

  bool holds(std::string_view other) const { return std::string_view(piece, length) == other; }
  void take(std::string_view other, std::span<const uint32_t> its_ids) {
    if (its_ids.size() > kIds) return;
    std::copy(other.begin(), other.end(), piece);
    length = static_cast<uint8_t>(other.size());
    std::copy(its_ids.begin(), its_ids.end(), ids);
    count = static_cast<uint32_t>(its_ids.size());
  }

  char piece[kBytes];
  uint8_t length;  // 0: empty
  uint32_t ids[kIds];
  uint32_t count;
};

struct PieceEncoder::Batch {
  size_t count = 0;
  size_t ends[kBatchPieces];
  alignas(32) char keys[kBatchPieces][kKeyBytes];
  ShortSlot* slots[kBatchPieces];  // nullptr for a long piece
};

void PieceEncoder::remember_pieces() {
  static_assert(sizeof(ShortSlot) == 64 && sizeof(LongSlot) == 256);
  constexpr size_t kBytes = kShortSlots * sizeof(ShortSlot) + kLongSlots * sizeof(LongSlot);
  memory_ = allocate_aligned(kBytes);
  std::memset(memory_.get(), 0, kBytes);
}

PieceEncoder::ShortSlot& PieceEncoder::short_slot(uint64_t hash) const {
  return reinterpret_cast<ShortSlot*>(memory_.get())[hash & (kShortSlots - 1)];
}

PieceEncoder::LongSlot& PieceEncoder::long_slot(std::string_view piece) const {
  auto* slots = reinterpret_cast<LongSlot*>(memory_.get() + kShortSlots * sizeof(ShortSlot));
  return slots[hash_bytes(piece) & (kLongSlots - 1)];
}

// Computes a short piece that is not in its slot and stores it. If it has too many ids for a short slot, it
// goes to the long table.
void PieceEncoder::learn(ShortSlot& slot, const char* key, std::string_view piece,
                         std::vector<uint32_t>& out) {
  LongSlot& other = long_slot(piece);
  if (other.holds(piece)) {
    out.insert(out.end(), other.ids, other.ids + other.count);
    return;
  }
  const size_t before = out.size();
  model_.encode(piece, scratch_, out);
  const size_t count = out.size() - before;
  if (count > ShortSlot::kIds) return other.take(piece, {out.data() + before, count});
  std::memcpy(slot.key, key, kKeyBytes);
  std::copy_n(out.data() + before, count, slot.ids);
  slot.count = static_cast<uint32_t>(count);
}

void PieceEncoder::encode_long(std::string_view piece, std::vector<uint32_t>& out) {
  if (piece.size() > LongSlot::kBytes) return model_.encode(piece, scratch_, out);
  LongSlot& slot = long_slot(piece);
  if (slot.holds(piece)) {
    out.insert(out.end(), slot.ids, slot.ids + slot.count);
    return;
  }
  const size_t before = out.size();
  model_.encode(piece, scratch_, out);
  slot.take(piece, {out.data() + before, out.size() - before});
}

void PieceEncoder::encode_piece(std::string_view piece, std::vector<uint32_t>& out) {
  if (!remembers()) return model_.encode(piece, scratch_, out);
  if (piece.size() >= kKeyBytes) return encode_long(piece, out);
  alignas(32) char key[kKeyBytes];
  const __m256i k = make_key(piece.data(), piece.size(), 0);
  _mm256_store_si256(reinterpret_cast<__m256i*>(key), k);
  ShortSlot& slot = short_slot(hash_block(key));
  if (!is_key(k, slot.key)) return learn(slot, key, piece, out);
  out.insert(out.end(), slot.ids, slot.ids + slot.count);
}

// Prefetches the slots of all pieces, then uses them, so that the memory accesses overlap. Ids of pieces
// found in short slots are collected on the stack and appended together: each copy takes the whole slot, and
// the next one overwrites what was too much.
void PieceEncoder::encode_batch(std::string_view text, size_t begin, Batch& batch,
                                std::vector<uint32_t>& out) {
  for (size_t i = 0, from = begin; i < batch.count; from = batch.ends[i++]) {
    const size_t length = batch.ends[i] - from;
    batch.slots[i] = nullptr;
    if (length >= kKeyBytes) continue;
    const __m256i key = make_key(text.data() + from, length, text.size() - from);
    _mm256_store_si256(reinterpret_cast<__m256i*>(batch.keys[i]), key);
    batch.slots[i] = &short_slot(hash_block(batch.keys[i]));
    __builtin_prefetch(batch.slots[i]);
  }
  uint32_t ids[kBatchPieces * (ShortSlot::kIds + 1)];
  size_t count = 0;
  for (size_t i = 0, from = begin; i < batch.count; from = batch.ends[i++]) {
    ShortSlot* slot = batch.slots[i];
    if (slot != nullptr &&
        is_key(_mm256_load_si256(reinterpret_cast<const __m256i*>(batch.keys[i])), slot->key)) {
      std::memcpy(ids + count, slot->ids, sizeof(slot->ids) + sizeof(slot->count));
      count += slot->count;
      continue;
    }
    out.insert(out.end(), ids, ids + count);
    count = 0;
    const std::string_view piece = text.substr(from, batch.ends[i] - from);
    slot == nullptr ? encode_long(piece, out) : learn(*slot, batch.keys[i], piece, out);
  }
  out.insert(out.end(), ids, ids + count);
}

void PieceEncoder::encode(Splitter splitter, std::string_view text, std::vector<uint32_t>& out) {
  if (!remembers()) {
    for_each_piece(splitter, text, [&](std::string_view piece) { model_.encode(piece, scratch_, out); });
    return;
  }
  Batch batch;
  for (size_t begin = 0; begin < text.size(); begin = batch.ends[batch.count - 1]) {
    batch.count = split(splitter, text, begin, batch.ends);
    encode_batch(text, begin, batch, out);
  }
}

}  // namespace ostro::tokenizer
