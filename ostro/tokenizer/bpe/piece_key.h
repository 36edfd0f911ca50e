// make_key, is_key: keys of short pieces in caches, 32 bytes that are loaded, masked and compared at once.
// Pure functions.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ostro::tokenizer {

inline constexpr size_t kKeyBytes = 32;

// The key of a piece: its bytes, zeros, and its length (at most 31) in the last byte. `room` is the number of
// bytes that may be read at `piece`. With 32 or more they are loaded at once.
inline __m256i make_key(const char* piece, size_t length, size_t room) {
  alignas(32) static constexpr struct Masks {
    uint8_t bytes[2 * kKeyBytes] = {};
    constexpr Masks() {
      for (size_t i = 0; i < kKeyBytes; ++i) bytes[i] = 0xFF;
    }
  } kMasks;
  alignas(32) char copy[kKeyBytes];
  if (room < kKeyBytes) {
    std::memset(copy, 0, kKeyBytes);
    std::memcpy(copy, piece, length);
    piece = copy;
  }
  const __m256i mask =
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMasks.bytes + kKeyBytes - length));
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(piece));
  return _mm256_insert_epi8(_mm256_and_si256(bytes, mask), static_cast<char>(length), kKeyBytes - 1);
}

// True if `a` equals the key at `b`, which must be aligned to 32 bytes.
inline bool is_key(__m256i a, const char* b) {
  const __m256i equal = _mm256_cmpeq_epi8(a, _mm256_load_si256(reinterpret_cast<const __m256i*>(b)));
  return _mm256_movemask_epi8(equal) == -1;
}

}  // namespace ostro::tokenizer
