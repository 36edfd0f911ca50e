// Tc16Tile: tiles of products by the rule of tensor cores (docs/spec/numerics.md, N23), an output a lane. V
// says how: kLanes, kTogether (rows whose sums stay in registers); the types Int (kLanes of i32), Float and
// Short (2 kLanes of i16); and the functions below by which it is used.
//
// A group: the largest exponent of its products from sums of 16-bit exponents, and with it the exponent E of
// the step. Each product, exact in f32, gets the exponent of its number of units 2^(E - 25) by an addition to
// its bits, and is cut toward zero by the conversion to an integer. c likewise. The sum of integers is
// converted toward zero, for which MXCSR is set around the tile. What this does not cover goes through
// tc16_step, lane by lane: rows of kTc16Slow, E outside of [kLeastE, kMostE], and sums that might pass 2^31.
#pragma once

#include "ostro/products/tc16/kernels/tc16_pack.inc.h"
#include "ostro/products/tile/gemm_store.inc.h"

namespace ostro::kernels {
namespace {

template <class V>
struct Tc16Tile {
  static constexpr int kMr = 4, kNr = 2 * V::kLanes;
  // A's values lie 2 exponents lower: a product is then below 1, and the exponent that is added is never
  // negative, also where c is far above all products and these vanish.
  static constexpr int kDown = 2;
  // Below kLeastE a result may be denormal; above kMostE it may overflow.
  static constexpr int kLeastE = -100, kMostE = 120;
  static constexpr int kAbsent = -8000;  // E is below it if there is no addend
  // |products| stay below 2^31 in any case, and c adds at most 2^26.
  static constexpr int kMostSum = 0x7bffffff;
  static constexpr int64_t kGroupA = kTc16GroupBytes<kMr>, kGroupB = kTc16GroupBytes<kNr>;

  using Int = typename V::Int;
  using Float = typename V::Float;

  static const char* exponents(const char* group, int width) { return group + kTc16 * 4 * width; }
  static const char* bases(const char* group, int width) { return group + kTc16 * 6 * width; }

  // Lanes of row r, half t whose step is done on integers.
  static void slow_lanes(unsigned lanes, const char* a, const char* b, int r, int t, const float* before,
                         float* c) {
    uint32_t left[kTc16], right[kTc16];
    unpack_tc16<kMr, kDown>(a, r, left);
    for (int i = 0; i < V::kLanes; ++i) {
      if ((lanes >> i & 1) == 0) continue;
      unpack_tc16<kNr, 0>(b, t * V::kLanes + i, right);
      c[i] = tc16_step(left, 1, right, 1, before[i]);
    }
  }

  // One group of rows r0 to r0 + R - 1.
  template <int R>
  static void group(const char* a, const char* b, int r0, float* c, int64_t ldc, bool zero) {
    typename V::Short most[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) most[r] = V::set_short(2 * kNoExponent);
    const char *ea = exponents(a, kMr) + 2 * r0, *eb = exponents(b, kNr);
#pragma GCC unroll 4
    for (int k = 0; k < kTc16; ++k) {
      const typename V::Short right = V::load_short(eb + k * 2 * kNr);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        most[r] = V::max_short(most[r], V::add_short(right, V::set_short_at(ea + k * 2 * kMr + 2 * r)));
    }
    Int e[R][2], up[R][2], sum[R][2];
    unsigned slow[R][2];
#pragma GCC unroll 2
    for (int t = 0; t < 2; ++t) {
      const Int base_b = V::load_int(bases(b, kNr) + 4 * t * V::kLanes);
      const unsigned slow_b = V::equal(base_b, V::set_int(kTc16Slow));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        int32_t base_a;
        __builtin_memcpy(&base_a, bases(a, kMr) + 4 * (r0 + r), 4);
        const Int base = V::add(base_b, V::set_int(base_a));
        const Int bits = zero ? V::set_int(0) : V::bits_of(V::load(c + (r0 + r) * ldc + t * V::kLanes));
        // Without c an exponent below all others; else its field, of a denormal 0.
        const Int of_c = V::add_where_zero(
            V::add(V::template right<24>(V::template left<1>(bits)), V::set_int(-127)), bits, kNoExponent);
        const Int largest = V::max(V::add(V::widen(most[r], t), base), of_c);
        slow[r][t] = slow_b | V::greater(largest, V::set_int(kMostE)) |
                     (V::greater(V::set_int(kLeastE), largest) & V::greater(largest, V::set_int(kAbsent)));
        if (base_a == kTc16Slow) slow[r][t] = (1u << V::kLanes) - 1;
        e[r][t] = V::max(largest, V::set_int(kLeastE));
        const Int power = V::add(V::subtract(base, e[r][t]), V::set_int(25 + kDown));
        up[r][t] = V::template left<23>(V::max(V::min(power, V::set_int(125)), V::set_int(0)));
        sum[r][t] = V::set_int(0);
      }
    }
    const char* values = a + 4 * r0;
#pragma GCC unroll 4
    for (int k = 0; k < kTc16; ++k) {
      const char* row = b + k * 4 * kNr;
      const Float b0 = V::load(row), b1 = V::load(row + 4 * V::kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const Float x = V::set_at(values + k * 4 * kMr + 4 * r);
        sum[r][0] = V::add(sum[r][0], V::cut(V::add(V::bits_of(V::multiply(x, b0)), up[r][0])));
        sum[r][1] = V::add(sum[r][1], V::cut(V::add(V::bits_of(V::multiply(x, b1)), up[r][1])));
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int t = 0; t < 2; ++t) {
        float* to = c + (r0 + r) * ldc + t * V::kLanes;
        const Float before = zero ? V::of_bits(V::set_int(0)) : V::load(to);
        slow[r][t] |= V::greater(V::magnitude(sum[r][t]), V::set_int(kMostSum));
        // 2^(25 - e) and 2^(e - 25).
        const Int shift = V::template left<23>(V::add(e[r][t], V::set_int(-25)));
        const Float units = V::of_bits(V::subtract(V::set_int(127 << 23), shift)),
                    unit = V::of_bits(V::add(V::set_int(127 << 23), shift));
        const Int total = V::add(sum[r][t], V::cut_of(V::multiply(before, units)));
        V::store(to, V::multiply(V::to_float(total), unit));
        if (__builtin_expect(slow[r][t] != 0, 0)) {
          float lanes[V::kLanes];
          V::store(lanes, before);
          slow_lanes(slow[r][t], a, b, r0 + r, t, lanes, to);
        }
      }
    }
  }

  template <int Rows>
  __attribute__((noinline)) static void rows(int64_t k, const char* a, const char* b, float* c, int64_t ldc,
                                             bool first) {
    for (int64_t at = 0; at < k; at += kTc16, a += kGroupA, b += kGroupB) {
      const bool zero = first && at == 0;
      constexpr int kFirst = Rows < V::kTogether ? Rows : V::kTogether;
      group<kFirst>(a, b, 0, c, ldc, zero);
      if constexpr (Rows > kFirst) group<Rows - kFirst>(a, b, kFirst, c, ldc, zero);
    }
  }

  static void multiply(int64_t k, const void* a, const void* b, float* c, int64_t ldc, int count,
                       bool first) {
    constexpr decltype(&rows<1>) kRows[] = {rows<1>, rows<2>, rows<3>, rows<4>};
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | _MM_ROUND_TOWARD_ZERO);
    kRows[count - 1](k, static_cast<const char*>(a), static_cast<const char*>(b), c, ldc, first);
    _mm_setcsr(mode);
  }

  static constexpr GemmKernel kernel() {
    return {kMr,
            kNr,
            kTc16,
            kTc16GroupBytes<kMr> / kTc16,
            kTc16GroupBytes<kNr> / kTc16,
            pack_tc16<kMr, kDown>,
            pack_tc16<kNr, 0>,
            multiply,
            1,
            round_row_plain,
            store_f32_plain<kNr>,
            store_bf16_plain<kNr, round_row_plain>,
            nullptr,
            nullptr,
            256,
            128};
  }
};

}  // namespace
}  // namespace ostro::kernels
