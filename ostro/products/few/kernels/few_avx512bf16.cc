// Products of few rows in bf16, on VDPBF16PS. The instruction adds its high product first and chains both on
// one accumulator. So the even chain of N7 takes the pairs (low = 4q + 2, high = 4q), the odd one (4q + 3, 4q
// + 1).
//
// gcc 12 takes what its own header leaves undefined, and its instructions do not read, for a mistake (its bug
// 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "ostro/machine/vector/transpose16_avx512.inc.h"
#include "ostro/products/few/kernels/few_rows.inc.h"

namespace ostro::kernels {
namespace {

constexpr int kPairUnit = 32, kMostPairs = 6;

inline __m512bh pair_words(__m512i x) { return __builtin_bit_cast(__m512bh, x); }

// Which quadruples of a group a tile goes through; its chains lie in FewSums::chains before and after.
struct Quadruples {
  int begin, end;
  bool first() const { return begin == 0; }
  bool last() const { return end == 8; }
};

// `words(q, e, o)` reads the unit's words of quadruple q for the even and the odd chain; R rows.
template <int R, class Words>
inline void pairs_tile(const Words& words, Quadruples part, const uint32_t* x, int64_t rows, float* c,
                       float* chains, int64_t stride) {
  __m512 even[R][2], odd[R][2];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const float* from = chains + 2 * r * stride + 16 * i;
      even[r][i] = part.first() ? _mm512_setzero_ps() : _mm512_loadu_ps(from);
      odd[r][i] = part.first() ? _mm512_setzero_ps() : _mm512_loadu_ps(from + stride);
    }
  }
  for (int q = part.begin; q < part.end; ++q) {
    __m512i e[2], o[2];
    words(q, e, o);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512bh a = pair_words(_mm512_set1_epi32(static_cast<int>(x[q * rows + r])));
      const __m512bh b = pair_words(_mm512_set1_epi32(static_cast<int>(x[(8 + q) * rows + r])));
      even[r][0] = _mm512_dpbf16_ps(even[r][0], a, pair_words(e[0]));
      even[r][1] = _mm512_dpbf16_ps(even[r][1], a, pair_words(e[1]));
      odd[r][0] = _mm512_dpbf16_ps(odd[r][0], b, pair_words(o[0]));
      odd[r][1] = _mm512_dpbf16_ps(odd[r][1], b, pair_words(o[1]));
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      float *to = c + r * stride + 16 * i, *chain = chains + 2 * r * stride + 16 * i;
      if (part.last()) {
        _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), _mm512_add_ps(even[r][i], odd[r][i])));
      } else {
        _mm512_storeu_ps(chain, even[r][i]);
        _mm512_storeu_ps(chain + stride, odd[r][i]);
      }
    }
  }
}

template <int kMost, class Words>
inline void pairs_height(int height, const Words& words, Quadruples part, const uint32_t* x, int64_t rows,
                         float* c, float* chains, int64_t stride) {
  if (height == kMost) return pairs_tile<kMost>(words, part, x, rows, c, chains, stride);
  if constexpr (kMost > 1) pairs_height<kMost - 1>(height, words, part, x, rows, c, chains, stride);
}

template <class Words>
inline void pairs_rows(const Words& words, Quadruples part, const FewSums& s, const uint32_t* x, float* c,
                       float* chains) {
  for (int r = 0, tiles = (s.rows + kMostPairs - 1) / kMostPairs; r < s.rows; --tiles) {
    const int height = (s.rows - r + tiles - 1) / tiles;
    pairs_height<kMostPairs>(height, words, part, x + r, s.rows, c + r * s.stride, chains + 2 * r * s.stride,
                             s.stride);
    r += height;
  }
}

// Two rows of 32 columns as words: low from the first, high from the second, columns in the order of kOrder.
inline void interleave(__m512i low, __m512i high, __m512i (&words)[2]) {
  words[0] = _mm512_unpacklo_epi16(low, high);
  words[1] = _mm512_unpackhi_epi16(low, high);
}

// Each quarter of 128 bits holds eight columns: four in the first vector, four in the second.
constexpr uint8_t kOrder[kPairUnit] = {0, 1, 2, 3, 8,  9,  10, 11, 16, 17, 18, 19, 24, 25, 26, 27,
                                       4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31};

void pairs_across(const FewAcross& b, const FewSums& s) {
  const auto* x = static_cast<const uint32_t*>(s.x);
  const Quadruples part{b.begin / 4, (b.begin + b.steps) / 4};
  for (int64_t n = 0; n < b.columns; n += kPairUnit) {
    pairs_rows(
        [&](int q, __m512i(&e)[2], __m512i(&o)[2]) {
          const void* const* w = b.w + 4 * (q - part.begin);
          const auto row = [&](int k) { return _mm512_loadu_si512(static_cast<const uint16_t*>(w[k]) + n); };
          interleave(row(2), row(0), e);
          interleave(row(3), row(1), o);
        },
        part, s, x, s.c + n, s.chains + n);
    prefetch_rows(b, b.steps, n * 2, kPairUnit * 2);
  }
}

// One line of 16 columns as words: row 2q has those of the even chain, row 2q + 1 those of the odd one.
inline void turn_pairs(const void* const* w, int64_t byte, uint32_t* out) {
  // 16-bit elements 0 1 2 3 of each 8 bytes become 2 0 3 1: the even word, then the odd one.
  const __m512i order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(4, 5, 0, 1, 6, 7, 2, 3, 12, 13, 8, 9, 14, 15, 10, 11));
  __m512i rows[16];
  for (int j = 0; j < 16; ++j)
    rows[j] = _mm512_shuffle_epi8(_mm512_loadu_si512(static_cast<const char*>(w[j]) + byte), order);
  machine::transpose16(rows);
  for (int i = 0; i < 16; ++i) _mm512_store_si512(out + i * kPairUnit, rows[i]);
}

void pairs_along(const FewAlong& b, const FewSums& s) {
  alignas(64) uint32_t turned[16 * kPairUnit];
  const auto* x = static_cast<const uint32_t*>(s.x);
  for (int64_t i = 0; i < b.chunks; ++i, x += int64_t{kFewGroup / 2} * s.rows) {
    turn_pairs(b.w, i * kFewLine, turned);
    turn_pairs(b.w + 16, i * kFewLine, turned + 16);
    prefetch_columns(b, i, kPairUnit);
    pairs_rows(
        [&](int q, __m512i(&e)[2], __m512i(&o)[2]) {
          for (int v = 0; v < 2; ++v) {
            e[v] = _mm512_load_si512(turned + 2 * q * kPairUnit + 16 * v);
            o[v] = _mm512_load_si512(turned + (2 * q + 1) * kPairUnit + 16 * v);
          }
        },
        {0, 8}, s, x, s.c, s.c);
  }
}

void pairs_panels(const FewPanels& b, const FewSums& s) {
  const auto* x = static_cast<const uint32_t*>(s.x);
  for (int64_t k = 0; k < b.steps; k += kFewGroup, x += int64_t{kFewGroup / 2} * s.rows)
    for (int p = 0; p < b.panels; ++p) {
      const uint16_t* from = static_cast<const uint16_t*>(b.w[p]) + k * kPairUnit;
      pairs_rows(
          [&](int q, __m512i(&e)[2], __m512i(&o)[2]) {
            const auto row = [&](int i) { return _mm512_loadu_si512(from + (4 * q + i) * kPairUnit); };
            interleave(row(2), row(0), e);
            interleave(row(3), row(1), o);
          },
          {0, 8}, s, x, s.c + p * kPairUnit, s.c);
    }
}

}  // namespace

const FewKernel& few_bf16_avx512bf16() {
  static constexpr FewKernel kKernel = {kPairUnit, 16,     16,           FewLeft::kChains, FewLeft::kChains,
                                        kOrder,    kOrder, pairs_across, pairs_along,      pairs_panels};
  return kKernel;
}

}  // namespace ostro::kernels
