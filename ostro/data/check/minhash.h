// MinHash signatures: how alike two texts are, from a few numbers of each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ostro::data {

inline constexpr size_t kMinHashes = 128;
using Signature = std::array<uint32_t, kMinHashes>;

// Makes signatures; immutable and thread-safe.
class MinHasher {
 public:
  // Texts are compared by their stretches of `shingle` words; `seed` chooses the hash functions.
  MinHasher(size_t shingle, uint64_t seed);

  // Of a text's word hashes; one of fewer words than a shingle is one shingle. False without words.
  bool sign(const std::vector<uint64_t>& words, Signature& out) const;

 private:
  size_t shingle_;
  Signature seeds_;
};

// The share of equal numbers: an estimate of the Jaccard index of the texts' sets of shingles, with a
// standard deviation of at most 0.044.
double estimated_jaccard(const Signature& a, const Signature& b);

// How signatures are cut into bands: two texts are compared when one band of theirs is equal.
struct Bands {
  size_t rows = 1, count = kMinHashes;
  // The longest bands with which texts as alike as `threshold` meet with a chance of 0.999.
  static Bands for_threshold(double threshold);
  uint64_t key(const Signature& signature, size_t band) const;
};

}  // namespace ostro::data
