// Fingerprint words of one run of memory (docs/numerics.md, N14), per instruction set. Internal to ostro/cpu.
#pragma once

#include <cstdint>

namespace ostro::cpu {

// The constants of one lane (numerics/fingerprint.h).
struct FingerprintLane {
  uint64_t index_factor, factor1, factor2;
};

// Adds mix(first + w, word w) for w in [0, words) to sums[0] and sums[1], with lanes[0] and lanes[1].
using FingerprintWords = void (*)(const FingerprintLane* lanes, uint64_t first, const char* data,
                                  int64_t words, uint64_t* sums);

void fingerprint_words_generic(const FingerprintLane* lanes, uint64_t first, const char* data, int64_t words,
                               uint64_t* sums);
// AVX-512 has a 64-bit multiplication; AVX2 has not.
void fingerprint_words_avx512(const FingerprintLane* lanes, uint64_t first, const char* data, int64_t words,
                              uint64_t* sums);

}  // namespace ostro::cpu
