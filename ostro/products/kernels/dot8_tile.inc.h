// WordTile: the tile kernel of the kernels that multiply words of four bytes with int8 or int16 numbers. V
// says how: kWidth (sums of a vector), kNumbers (of a word), kOffset; the types Int (sums), Float and Right
// (words of B); load, set_int, set_float, load_float, dot(sum, right, left word), scaled(sum, scale), fma,
// store, zero.
//
// With V::kOffset B is packed as unsigned bytes, 128 more than the number, and A's sums are -128 times the
// sum of its row. The accumulators start from them, so they end at the sum of products, exactly. Otherwise
// A's sums are zeros.
#pragma once

#include "ostro/products/kernels/dot8_pack.inc.h"

namespace ostro::kernels {
namespace {

template <class V, int Mr, int Vectors>
struct WordTile {
  static constexpr int kNr = Vectors * V::kWidth;

  static void pack_a(const Int8PanelSource& s, void* out, int32_t* sums) {
    if constexpr (V::kNumbers == 4)
      pack8_groups<Mr, 0>(s, out);
    else
      pack8_words<Mr>(s, out);
    row_sums(s, Mr, V::kOffset ? -128 : 0, sums);
  }

  static void pack_b(const Int8PanelSource& s, void* out) {
    if constexpr (V::kNumbers == 4)
      pack8_groups<kNr, V::kOffset ? 0x80808080u : 0>(s, out);
    else
      pack8_words<kNr>(s, out);
  }

  // All accumulators stay in registers, as the loops over them are unrolled.
  template <int Rows>
  static void rows(const Int8Tile& t) {
    const std::byte *a = t.a, *b = t.b;
    for (int64_t block = 0; block < t.blocks; ++block) {
      const std::byte* const end = a + Mr * 4 * (t.steps[block] / V::kNumbers);
      const std::byte* const a_scales = end;
      const std::byte* const a_sums = a_scales + Mr * 4;
      typename V::Int sum[Rows][Vectors];
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const typename V::Int start = V::set_int(a_sums + 4 * i);
#pragma GCC unroll 16
        for (int j = 0; j < Vectors; ++j) sum[i][j] = start;
      }
#pragma GCC unroll 1
      for (; a != end; a += Mr * 4, b += kNr * 4) {
        typename V::Right right[Vectors];
#pragma GCC unroll 16
        for (int j = 0; j < Vectors; ++j) right[j] = V::load(b + 4 * V::kWidth * j);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; ++i) {
          const typename V::Int left = V::set_int(a + 4 * i);
#pragma GCC unroll 16
          for (int j = 0; j < Vectors; ++j) V::dot(sum[i][j], right[j], left);
        }
      }
      const bool first = block == 0 && t.first;
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const typename V::Float scale = V::set_float(a_scales + 4 * i);
#pragma GCC unroll 16
        for (int j = 0; j < Vectors; ++j) {
          float* c = t.c + i * kNr + j * V::kWidth;
          V::store(c, V::fma(V::scaled(sum[i][j], V::load_float(b + 4 * V::kWidth * j)), scale,
                             first ? V::zero() : V::load_float(c)));
        }
      }
      a += Mr * 8;
      b += kNr * 4;
    }
  }

  static void multiply(const Int8Tile& t) {
    if constexpr (Mr > 8)
      if (t.rows > 8) return rows<Mr>(t);
    if constexpr (Mr > 4)
      if (t.rows > 4) return rows<(Mr > 8 ? 8 : Mr)>(t);
    if (t.rows > 1) return rows<4>(t);
    rows<1>(t);
  }

  static constexpr DotInt8Kernel kernel(const char* name, const GemmKernel& (*store)()) {
    return {.name = name,
            .mr = Mr,
            .nr = kNr,
            .k_unit = V::kNumbers,
            .a_bytes = 4 / V::kNumbers,
            .b_bytes = 4 / V::kNumbers,
            .pack_a = pack_a,
            .pack_b = pack_b,
            .multiply = multiply,
            .store = store};
  }
};

}  // namespace
}  // namespace ostro::kernels
