// bf16 attention on VDPBF16PS. The instruction adds its high product first and chains both on one
// accumulator; the order of quads feeds it so that words 0 to 7 of a group are N7's even chain, and 8 to 15
// its odd one.
#include "ostro/kernels/attention/kernels/attention_packed_table.inc.h"

namespace ostro::kernels {
namespace {

struct DotProduct {
  static constexpr bool kNatural = false;
  static constexpr int kOrder[4] = {2, 0, 3, 1};
  static constexpr int first(int q) { return q; }
  static constexpr int second(int q) { return 8 + q; }
  static void enter() {}
  static void leave() {}

  static void multiply(float* c, int64_t ldc, int64_t rows, const uint32_t* a, int64_t lda, const uint32_t* b,
                       int64_t ldb, int64_t groups, bool from_zero) {
    for (; rows >= 6; rows -= 6, c += 6 * ldc, a += 6 * lda)
      multiply_rows<6>(c, ldc, a, lda, b, ldb, groups, from_zero);
    for (; rows >= 2; rows -= 2, c += 2 * ldc, a += 2 * lda)
      multiply_rows<2>(c, ldc, a, lda, b, ldb, groups, from_zero);
  }

  template <int R>
  static void multiply_rows(float* c, int64_t ldc, const uint32_t* a, int64_t lda, const uint32_t* b,
                            int64_t ldb, int64_t groups, bool from_zero) {
    const auto words = [](__m512i x) { return __builtin_bit_cast(__m512bh, x); };
    for (int64_t g = 0; g < groups; ++g, a += 16, b += 16 * ldb) {
      __m512 e[R][2], o[R][2];
      for (int r = 0; r < R; ++r) e[r][0] = e[r][1] = o[r][0] = o[r][1] = _mm512_setzero_ps();
      for (int q = 0; q < 8; ++q) {
        const uint32_t* even = b + q * ldb;
        const uint32_t* odd = even + 8 * ldb;
        const __m512bh e0 = words(_mm512_loadu_si512(even)), e1 = words(_mm512_loadu_si512(even + 16));
        const __m512bh o0 = words(_mm512_loadu_si512(odd)), o1 = words(_mm512_loadu_si512(odd + 16));
        for (int r = 0; r < R; ++r) {
          const __m512bh x = words(_mm512_set1_epi32(static_cast<int>(a[r * lda + q])));
          const __m512bh y = words(_mm512_set1_epi32(static_cast<int>(a[r * lda + 8 + q])));
          e[r][0] = _mm512_dpbf16_ps(e[r][0], x, e0);
          e[r][1] = _mm512_dpbf16_ps(e[r][1], x, e1);
          o[r][0] = _mm512_dpbf16_ps(o[r][0], y, o0);
          o[r][1] = _mm512_dpbf16_ps(o[r][1], y, o1);
        }
      }
      for (int r = 0; r < R; ++r)
        for (int h = 0; h < 2; ++h) {
          float* to = c + r * ldc + 16 * h;
          const __m512 before = from_zero && g == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(to);
          _mm512_storeu_ps(to, _mm512_add_ps(before, _mm512_add_ps(e[r][h], o[r][h])));
        }
    }
  }
};

}  // namespace

const AttentionKernels& attention_avx512bf16() {
  static const AttentionKernels table = attention_packed_table<DotProduct>();
  return table;
}

}  // namespace ostro::kernels
