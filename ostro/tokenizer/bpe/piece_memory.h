// PieceMemory: a cache of fixed size with the ids of pieces seen before, for models that are slow to run. Not
// thread-safe; each thread has its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "ostro/tokenizer/bpe/piece_hash.h"
#include "ostro/tokenizer/bpe/piece_key.h"

namespace ostro::tokenizer {

// The cache is direct-mapped (12 MiB): a newer piece replaces the one in its slot. The whole piece is
// compared, so a collision costs time but never gives wrong ids. Pieces longer than kLongBytes, or with too
// many ids, are not stored.
class PieceMemory {
  static constexpr size_t kIds = 7, kLongIds = 30;

 public:
  static constexpr size_t kBytes = kKeyBytes - 1, kLongBytes = 126;
  static constexpr uint32_t kMostBound = (1u << 26) - 1;

  // The slot of a piece, and what the slot holds.
  class Place {
   public:
    // True if the slot holds the ids of this piece.
    bool known() const {
      if (small_ != nullptr)
        return is_key(_mm256_load_si256(reinterpret_cast<const __m256i*>(key_)), small_->key);
      return large_ != nullptr && std::string_view(large_->piece, large_->length) == piece_;
    }
    // The stored ids; only when known().
    std::span<const uint32_t> ids() const {
      return small_ != nullptr ? std::span<const uint32_t>(small_->ids, small_->note & 63)
                               : std::span<const uint32_t>(large_->ids, large_->note & 63);
    }
    // A number that was stored with the ids. The unigram model uses it as a limit up to which the ids are
    // valid.
    uint32_t bound() const { return (small_ != nullptr ? small_->note : large_->note) >> 6; }
    void append(std::vector<uint32_t>& out) const {
      const auto found = ids();
      out.insert(out.end(), found.begin(), found.end());
    }
    // Stores the ids of this piece, in place of the slot's piece. Too many ids are not stored.
    void keep(std::span<const uint32_t> ids, uint32_t bound = kMostBound) const {
      const uint32_t note = bound << 6 | static_cast<uint32_t>(ids.size());
      if (small_ != nullptr && ids.size() <= kIds) {
        std::memcpy(small_->key, key_, kKeyBytes);
        std::copy(ids.begin(), ids.end(), small_->ids);
        small_->note = note;
      } else if (large_ != nullptr && ids.size() <= kLongIds) {
        std::copy(piece_.begin(), piece_.end(), large_->piece);
        large_->length = static_cast<uint8_t>(piece_.size());
        std::copy(ids.begin(), ids.end(), large_->ids);
        large_->note = note;
      }
    }

   private:
    friend class PieceMemory;
    struct alignas(64) Small {  // a cache line
      char key[kKeyBytes];      // all zeros: empty slot (no key is all zeros)
      uint32_t ids[kIds];
      uint32_t note;  // number of ids in bits 0 to 5, bound in the bits above
    };
    struct alignas(64) Large {
      char piece[kLongBytes + 1];
      uint8_t length;  // 0: empty slot
      uint32_t ids[kLongIds];
      uint32_t note;
    };
    alignas(32) char key_[kKeyBytes];  // key of a small piece
    std::string_view piece_;
    Small* small_ = nullptr;
    Large* large_ = nullptr;
  };

  // Turns the cache on. Without it nothing is stored, which is better for one short text.
  void enable() {
    if (!small_.empty()) return;
    small_.resize(kSlots);
    large_.resize(kLongSlots);
  }

  // Finds the slot of a piece and prefetches it. `room`: number of bytes that may be read from the piece's
  // begin.
  void find(std::string_view piece, size_t room, Place& place) {
    place.piece_ = piece;
    place.small_ = nullptr;
    place.large_ = nullptr;
    if (small_.empty() || piece.size() > kLongBytes) return;
    if (piece.size() > kBytes) {
      place.large_ = &large_[hash_bytes(piece) & (kLongSlots - 1)];
      __builtin_prefetch(place.large_);
      return;
    }
    _mm256_store_si256(reinterpret_cast<__m256i*>(place.key_), make_key(piece.data(), piece.size(), room));
    place.small_ = &small_[hash_block(place.key_) & (kSlots - 1)];
    __builtin_prefetch(place.small_);
  }

  // Appends the ids of a piece: the stored ones, or else those that compute(out) appends.
  template <typename Compute>
  void encode(std::string_view piece, std::vector<uint32_t>& out, Compute&& compute) {
    Place place;
    find(piece, 0, place);
    if (place.known()) return place.append(out);
    const size_t before = out.size();
    compute(out);
    place.keep(std::span(out).subspan(before));
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 17, kLongSlots = size_t{1} << 14;
  std::vector<Place::Small> small_;
  std::vector<Place::Large> large_;
};

}  // namespace ostro::tokenizer
