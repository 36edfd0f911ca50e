// FingerprintWords: adds up the fingerprint words of one run of memory (docs/spec/numerics.md, N14); one
// function per instruction set. Internal to ostro/kernels.
#pragma once

#include <cstdint>

namespace ostro::kernels {

// The constants of one lane (numerics/fingerprint.h).
struct FingerprintLane {
  uint64_t index_factor, factor1, factor2;
};

// Adds mix(first + w, word w) for w in [0, words) to sums[0] and sums[1], with lanes[0] and lanes[1].
// Meanwhile it prefetches the 8 * words bytes at `ahead` (any address is allowed). The arithmetic of one
// cache line fills the reorder window, so without this hint loads from memory would not overlap.
using FingerprintWords = void (*)(const FingerprintLane* lanes, uint64_t first, const char* data,
                                  int64_t words, uint64_t* sums, const char* ahead);

void fingerprint_words_generic(const FingerprintLane* lanes, uint64_t first, const char* data, int64_t words,
                               uint64_t* sums, const char* ahead);
// From 32-bit products: AVX2 has no 64-bit multiplication; AVX-512 has.
void fingerprint_words_avx2(const FingerprintLane* lanes, uint64_t first, const char* data, int64_t words,
                            uint64_t* sums, const char* ahead);
void fingerprint_words_avx512(const FingerprintLane* lanes, uint64_t first, const char* data, int64_t words,
                              uint64_t* sums, const char* ahead);

}  // namespace ostro::kernels
