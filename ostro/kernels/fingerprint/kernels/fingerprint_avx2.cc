// Fingerprint words, eight at a time, without a 64-bit multiplication.
//
// x * f mod 2^64 is the 64-bit product low(x) * low(f), plus low(x) * high(f) + high(x) * low(f) in its upper
// half, of which the low 32 bits count. The low and the high halves of eight words lie in vectors of their
// own, so one 32-bit multiplication gives such a term for all eight, and x ^= x >> 32 is one xor of the two
// vectors.
#include <immintrin.h>

#include "ostro/kernels/fingerprint/kernels/fingerprint.inc.h"

namespace ostro::kernels {
namespace {

inline __m256i all64(uint64_t x) { return _mm256_set1_epi64x(static_cast<int64_t>(x)); }
inline __m256i all32(uint64_t x) { return _mm256_set1_epi32(static_cast<int32_t>(x)); }

// The low or the high halves of eight words, in one order for both.
template <int kChoice>
inline __m256i halves(__m256i a, __m256i b) {
  return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), kChoice));
}
inline __m256i low_halves(__m256i a, __m256i b) { return halves<0x88>(a, b); }
inline __m256i high_halves(__m256i a, __m256i b) { return halves<0xdd>(a, b); }

struct EightWords {
  __m256i low, high;  // four words each
};

struct Avx2Lane {
  __m256i key, step, low1, high1, low2, high2, sum;

  void start(const FingerprintLane& lane, uint64_t first) {
    const uint64_t k = lane.index_factor, at = first * k;
    key = _mm256_add_epi64(all64(at),
                           _mm256_set_epi64x(static_cast<int64_t>(3 * k), static_cast<int64_t>(2 * k),
                                             static_cast<int64_t>(k), 0));
    step = all64(4 * k);
    low1 = all32(lane.factor1), high1 = all32(lane.factor1 >> 32);
    low2 = all32(lane.factor2), high2 = all32(lane.factor2 >> 32);
    sum = _mm256_setzero_si256();
  }
  static EightWords load(const char* data) {
    const auto* words = reinterpret_cast<const __m256i*>(data);
    return {_mm256_loadu_si256(words), _mm256_loadu_si256(words + 1)};
  }
  // x = (word ^ key) * factor1, x = (x ^ x >> 32) * factor2, sum += x ^ x >> 29, for eight words. The second
  // product is formed for the even and then for the odd 32-bit lanes of `low`, because mul_epu32 reads only
  // even ones; the order of the sum does not matter.
  void add(const EightWords& words) {
    const __m256i a = _mm256_xor_si256(words.low, key);
    key = _mm256_add_epi64(key, step);
    const __m256i b = _mm256_xor_si256(words.high, key);
    key = _mm256_add_epi64(key, step);
    const __m256i product_a = _mm256_mul_epu32(a, low1), product_b = _mm256_mul_epu32(b, low1);
    const __m256i cross = _mm256_add_epi32(_mm256_mullo_epi32(low_halves(a, b), high1),
                                           _mm256_mullo_epi32(high_halves(a, b), low1));
    const __m256i high = _mm256_add_epi32(high_halves(product_a, product_b), cross);
    const __m256i low = _mm256_xor_si256(low_halves(product_a, product_b), high);
    const __m256i cross2 = _mm256_add_epi32(_mm256_mullo_epi32(low, high2), _mm256_mullo_epi32(high, low2));
    finish(_mm256_add_epi64(_mm256_mul_epu32(low, low2), _mm256_slli_epi64(cross2, 32)));
    finish(_mm256_add_epi32(_mm256_mul_epu32(_mm256_srli_epi64(low, 32), low2),
                            _mm256_blend_epi32(_mm256_setzero_si256(), cross2, 0xaa)));
  }
  void finish(__m256i x) { sum = _mm256_add_epi64(sum, _mm256_xor_si256(x, _mm256_srli_epi64(x, 29))); }
  uint64_t total() const {
    uint64_t parts[4];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts), sum);
    return parts[0] + parts[1] + parts[2] + parts[3];
  }
};

}  // namespace

void fingerprint_words_avx2(const FingerprintLane* lanes, uint64_t first, const char* data, int64_t words,
                            uint64_t* sums, const char* ahead) {
  fingerprint_by_eights<Avx2Lane>(lanes, first, data, words, sums, ahead);
}

}  // namespace ostro::kernels
