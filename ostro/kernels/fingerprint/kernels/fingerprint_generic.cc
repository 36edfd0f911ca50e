#include "ostro/kernels/fingerprint/kernels/fingerprint.inc.h"

namespace ostro::kernels {

void fingerprint_words_generic(const FingerprintLane* lanes, uint64_t first, const char* data, int64_t words,
                               uint64_t* sums, const char* ahead) {
  fingerprint_words(lanes, first, data, words, sums, ahead);
}

}  // namespace ostro::kernels
