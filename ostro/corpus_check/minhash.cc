#include "ostro/corpus_check/minhash.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ostro/corpus_check/words.h"

namespace ostro::corpus_check {

MinHasher::MinHasher(size_t shingle, uint64_t seed) : shingle_(shingle), seeds_{} {
  for (size_t i = 0; i < kMinHashes; ++i)
    seeds_[i] = static_cast<uint32_t>(mix64(mix64(seed) + (i + 1) * 0x9E3779B97F4A7C15ull));
}

// Number i of a signature is the minimum, over all shingles, of the i-th hash function. The functions mix one
// 32-bit hash of the shingle with a seed each, so a shingle's words are hashed once.
bool MinHasher::sign(const std::vector<uint64_t>& words, Signature& out) const {
  if (words.empty()) return false;
  out.fill(std::numeric_limits<uint32_t>::max());
  const StretchHashes stretches(words);
  const size_t length = std::min(shingle_, words.size());
  for (size_t first = 0; first + length <= words.size(); ++first) {
    const auto h = static_cast<uint32_t>(stretches.of(first, length) >> 32);
    for (size_t i = 0; i < kMinHashes; ++i) {  // no branches, so that the compiler can vectorize it
      uint32_t x = (h ^ seeds_[i]) * 0x7FEB352Du;
      x = (x ^ (x >> 15)) * 0x846CA68Bu;
      x ^= x >> 16;
      out[i] = std::min(out[i], x);
    }
  }
  return true;
}

double estimated_jaccard(const Signature& a, const Signature& b) {
  int equal = 0;
  for (size_t i = 0; i < kMinHashes; ++i) equal += a[i] == b[i] ? 1 : 0;
  return static_cast<double>(equal) / static_cast<double>(kMinHashes);
}

// Two texts of Jaccard index t miss each other with probability (1 - t^rows)^count. Longer bands give fewer
// false candidates, so the longest with a probability of at most 0.001 are taken.
Bands Bands::for_threshold(double threshold) {
  Bands out;
  for (size_t rows = 1; rows <= 16; ++rows) {
    const size_t count = kMinHashes / rows;
    const double missed =
        std::pow(1 - std::pow(threshold, static_cast<double>(rows)), static_cast<double>(count));
    if (missed > 0.001) break;
    out = {rows, count};
  }
  return out;
}

uint64_t Bands::key(const Signature& signature, size_t band) const {
  uint64_t h = mix64(band + 1);
  for (size_t i = band * rows; i < (band + 1) * rows; ++i) h = mix64(h ^ signature[i]) + i;
  return h;
}

}  // namespace ostro::corpus_check
