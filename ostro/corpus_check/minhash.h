// MinHasher: makes MinHash signatures, which estimate how similar two texts are from a few numbers for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ostro::corpus_check {

inline constexpr size_t kMinHashes = 128;
using Signature = std::array<uint32_t, kMinHashes>;

// Makes signatures; immutable and thread-safe.
class MinHasher {
 public:
  // A shingle is a run of `shingle` words; `seed` chooses the hash functions.
  MinHasher(size_t shingle, uint64_t seed);

  // Makes the signature from the hashes of a text's words. A text with fewer words is one shingle as a whole.
  // False for a text without words.
  bool sign(const std::vector<uint64_t>& words, Signature& out) const;

 private:
  size_t shingle_;
  Signature seeds_;
};

// The share of equal numbers in two signatures. It estimates the Jaccard index of the two sets of shingles,
// with a standard deviation of at most 0.044.
double estimated_jaccard(const Signature& a, const Signature& b);

// Cuts signatures into bands (LSH banding). Two texts are compared only if one of their bands is equal.
struct Bands {
  size_t rows = 1, count = kMinHashes;
  // The longest bands with which two texts of Jaccard index `threshold` share a band with probability 0.999.
  static Bands for_threshold(double threshold);
  // The hash of the numbers of one band and of its index.
  uint64_t key(const Signature& signature, size_t band) const;
};

}  // namespace ostro::corpus_check
