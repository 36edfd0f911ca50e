// Fingerprint: a checksum of arrays, docs/spec/numerics.md N14: two 64-bit lanes, each the sum mod 2^64 of
// mix(index, word) over all words of the array.
//
// A sum does not depend on shards, threads or order. Fingerprints find faults and divergence; they do not
// protect against an adversary.
//
// A word holds neighbours within one row of the last axis: 2 f32/i32/u32, 4 bf16, 8 bool (one byte each, 0 or
// 1), 1 i64/f64; the lower element in the lower bits, missing ones zero bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ostro::numerics {

struct FingerprintConstants {
  uint64_t index_factor;
  uint64_t factor1;
  uint64_t factor2;
};

// The first 64 bits of SHA-256("ostro fingerprint lane L X"), X = k, m1, m2, made odd.
inline constexpr FingerprintConstants kFingerprintLanes[2] = {
    {0x767891433a2f877d, 0x3fd5a02d9e3d4385, 0xd91b0b73b755caa3},
    {0xfca36a40cf18ce43, 0xc13f61c4b95866cb, 0x5108c6bc88663951},
};

// For a fixed index this is a bijection of the word, so changing one word always changes the sum.
inline constexpr uint64_t fingerprint_mix(const FingerprintConstants& c, uint64_t index, uint64_t word) {
  uint64_t x = word ^ (index * c.index_factor);
  x *= c.factor1;
  x ^= x >> 32;
  x *= c.factor2;
  x ^= x >> 29;
  return x;
}

// A value; not thread-safe. A default one is the fingerprint of no words.
struct Fingerprint {
  uint64_t lane[2] = {0, 0};

  void add_word(uint64_t index, uint64_t word) {
    lane[0] += fingerprint_mix(kFingerprintLanes[0], index, word);
    lane[1] += fingerprint_mix(kFingerprintLanes[1], index, word);
  }
  // Joins the fingerprints of two disjoint parts of one array.
  Fingerprint& operator+=(const Fingerprint& other) {
    lane[0] += other.lane[0];
    lane[1] += other.lane[1];
    return *this;
  }
  bool operator==(const Fingerprint&) const = default;
};

// Elements per word for elements of 1, 2, 4 or 8 bytes.
inline constexpr int64_t fingerprint_per_word(int64_t element_bytes) { return 8 / element_bytes; }

// Words per row of `row_length` elements.
inline constexpr int64_t fingerprint_words_per_row(int64_t row_length, int64_t element_bytes) {
  const int64_t per_word = fingerprint_per_word(element_bytes);
  return (row_length + per_word - 1) / per_word;
}

// Adds elements [first, first + bytes.size() / element_bytes) of one row. `row` is the global row-major index
// over all axes but the last, `row_length` the global length of the last axis (a scalar: row 0 of length 1).
// `first` must be a multiple of the elements per word, and the segment must end at one or at the row's end.
void add_row_segment(Fingerprint& fingerprint, int64_t row, int64_t row_length, int64_t element_bytes,
                     int64_t first, std::span<const std::byte> bytes);

// The fingerprint of a whole array held row-major without gaps: `rows` rows of `row_length` elements.
Fingerprint fingerprint_array(int64_t rows, int64_t row_length, int64_t element_bytes,
                              std::span<const std::byte> bytes);

// The fingerprint of bytes that are no array: one row of elements of one byte.
inline Fingerprint fingerprint_bytes(std::span<const std::byte> bytes) {
  return fingerprint_array(1, static_cast<int64_t>(bytes.size()), 1, bytes);
}

}  // namespace ostro::numerics
