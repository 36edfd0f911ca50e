// Eight words at a time: AVX-512 has a 64-bit multiplication.
#include <immintrin.h>

#include "ostro/kernels/fingerprint/kernels/fingerprint.inc.h"

namespace ostro::kernels {
namespace {

struct Avx512Lane {
  __m512i key, step, factor1, factor2, sum;

  void start(const FingerprintLane& lane, uint64_t first) {
    const __m512i index = _mm512_add_epi64(_mm512_set1_epi64(static_cast<int64_t>(first)),
                                           _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    key = _mm512_mullo_epi64(index, _mm512_set1_epi64(static_cast<int64_t>(lane.index_factor)));
    step = _mm512_set1_epi64(static_cast<int64_t>(8 * lane.index_factor));
    factor1 = _mm512_set1_epi64(static_cast<int64_t>(lane.factor1));
    factor2 = _mm512_set1_epi64(static_cast<int64_t>(lane.factor2));
    sum = _mm512_setzero_si512();
  }
  static __m512i load(const char* data) { return _mm512_loadu_si512(data); }
  void add(__m512i word) {
    __m512i x = _mm512_mullo_epi64(_mm512_xor_si512(word, key), factor1);
    x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 32)), factor2);
    sum = _mm512_add_epi64(sum, _mm512_xor_si512(x, _mm512_srli_epi64(x, 29)));
    key = _mm512_add_epi64(key, step);
  }
  uint64_t total() const {
    uint64_t parts[8], all = 0;
    _mm512_storeu_si512(parts, sum);
    for (uint64_t part : parts) all += part;
    return all;
  }
};

}  // namespace

void fingerprint_words_avx512(const FingerprintLane* lanes, uint64_t first, const char* data, int64_t words,
                              uint64_t* sums, const char* ahead) {
  fingerprint_by_eights<Avx512Lane>(lanes, first, data, words, sums, ahead);
}

}  // namespace ostro::kernels
