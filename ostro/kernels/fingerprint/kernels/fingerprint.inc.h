// fingerprint_words, fingerprint_by_eights: the loop of fingerprint_kernels.h without intrinsics, and the
// loop around lanes that take eight words at a time.
#pragma once

#include "ostro/kernels/fingerprint/kernels/fingerprint_kernels.h"

namespace ostro::kernels {
namespace {

inline void fingerprint_words(const FingerprintLane* lanes, uint64_t first, const char* data, int64_t words,
                              uint64_t* sums, const char* ahead) {
  const FingerprintLane a = lanes[0], b = lanes[1];
  // index * factor grows by the factor from word to word.
  uint64_t sum0 = 0, sum1 = 0, key0 = first * a.index_factor, key1 = first * b.index_factor;
  for (int64_t w = 0; w < words; ++w) {
    if (w % 8 == 0) __builtin_prefetch(ahead + 8 * w);
    uint64_t word;
    __builtin_memcpy(&word, data + 8 * w, 8);
    uint64_t x = (word ^ key0) * a.factor1;
    x = (x ^ (x >> 32)) * a.factor2;
    sum0 += x ^ (x >> 29);
    uint64_t y = (word ^ key1) * b.factor1;
    y = (y ^ (y >> 32)) * b.factor2;
    sum1 += y ^ (y >> 29);
    key0 += a.index_factor;
    key1 += b.index_factor;
  }
  sums[0] += sum0;
  sums[1] += sum1;
}

// Both lanes over all words; words after the last eight go through fingerprint_words. Lane: start(lane,
// number of the first word), add(Lane::load(data)) for eight words, total().
template <class Lane>
inline void fingerprint_by_eights(const FingerprintLane* lanes, uint64_t first, const char* data,
                                  int64_t words, uint64_t* sums, const char* ahead) {
  Lane a, b;
  a.start(lanes[0], first);
  b.start(lanes[1], first);
  int64_t w = 0;
  for (; w + 8 <= words; w += 8) {
    __builtin_prefetch(ahead + 8 * w);
    const auto eight = Lane::load(data + 8 * w);
    a.add(eight);
    b.add(eight);
  }
  sums[0] += a.total();
  sums[1] += b.total();
  if (w < words)
    fingerprint_words(lanes, first + static_cast<uint64_t>(w), data + 8 * w, words - w, sums, ahead + 8 * w);
}

}  // namespace
}  // namespace ostro::kernels
