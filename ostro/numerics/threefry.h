// Key: random numbers as a function of (key, index), docs/spec/numerics.md N12: Threefry-2x32-20 in JAX's
// partitionable layout. Element i of a draw depends on the key and i alone, so any shard makes its own part.
//
// A key starts from the seed and folds in a path of purposes (names, layer, step), never a rank or thread.
// Use a key either for draws or for fold_in, never for both: fold_in(key, i) and the draw at i have the same
// words.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace ostro::numerics {

// 64 bits of key, or one output block of threefry.
struct Key {
  uint32_t word0 = 0;
  uint32_t word1 = 0;
  bool operator==(const Key&) const = default;
};

// The 20 rounds on counters (x0, x1), in place. Word is uint32_t or a vector of them (one counter per lane).
template <typename Word>
inline void threefry_rounds(Key key, Word& x0, Word& x1) {
  const uint32_t k0 = key.word0, k1 = key.word1, k2 = k0 ^ k1 ^ 0x1bd11bdau;
  const auto round = [&](int rotation) {
    x0 += x1;
    x1 = (x1 << rotation) | (x1 >> (32 - rotation));
    x1 ^= x0;
  };
  const auto odd_group = [&] { round(13), round(15), round(26), round(6); };
  const auto even_group = [&] { round(17), round(29), round(16), round(24); };
  x0 += k0, x1 += k1;
  odd_group(), x0 += k1, x1 += k2 + 1;
  even_group(), x0 += k2, x1 += k0 + 2;
  odd_group(), x0 += k0, x1 += k1 + 3;
  even_group(), x0 += k1, x1 += k2 + 4;
  odd_group(), x0 += k2, x1 += k0 + 5;
}

// The block cipher on one counter.
inline Key threefry2x32(Key key, uint32_t x0, uint32_t x1) {
  threefry_rounds(key, x0, x1);
  return {x0, x1};
}

// (high half, low half) of the seed, as jax.random.key.
inline Key key_from_seed(uint64_t seed) {
  return {static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(seed)};
}

// threefry(key, (0, data)), both words, as jax.random.fold_in.
inline Key fold_in(Key key, uint32_t data) { return threefry2x32(key, 0, data); }

// Returns the 32-bit FNV-1a hash of a name, which is the number that is folded in for it.
inline constexpr uint32_t fnv1a32(std::string_view text) {
  uint32_t hash = 0x811c9dc5u;
  for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x01000193u;
  return hash;
}

// The key for one purpose with a name.
inline Key fold_in(Key key, std::string_view name) { return fold_in(key, fnv1a32(name)); }

// The draw at a global row-major index: x0 ^ x1 of the block at (index >> 32, index & 0xffffffff).
inline uint32_t random_bits(Key key, uint64_t index) {
  const Key block = threefry2x32(key, static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(index));
  return block.word0 ^ block.word1;
}

// [0, 1) in steps of 2^-23: ((bits >> 9) | 0x3f800000) as f32, minus 1.
inline float uniform_from_bits(uint32_t bits) {
  return std::bit_cast<float>((bits >> 9) | 0x3f800000u) - 1.0f;
}

// Standard normal: u = max(lo, f * 2 + lo) in f32 with f the uniform and lo = -1 + 2^-24,
// then f32(sqrt(2) * erfinv(u)) in f64. |result| < 5.5; 2^23 possible values.
float normal_from_bits(uint32_t bits);

// Normal cut off at +-3 standard deviations: u = max(-a, f * (2 a) + (-a)) in f32 with a = f32(erf(3 / sqrt
// 2)), then f32(sqrt(2) * erfinv(u)) in f64, clamped to [-3, 3]. Its standard deviation is 0.98658, not 1.
float truncated_normal_from_bits(uint32_t bits);

// One element of a draw, at a global row-major index.
inline float random_uniform(Key key, uint64_t index) { return uniform_from_bits(random_bits(key, index)); }
inline float random_normal(Key key, uint64_t index) { return normal_from_bits(random_bits(key, index)); }

}  // namespace ostro::numerics
