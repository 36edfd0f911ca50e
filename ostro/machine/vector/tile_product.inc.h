// product: small products C[i][lane] (+)= sum over k of A(i, k) * B[k][lane], the matrix arithmetic of
// attention_forward.inc.h and attention_backward.inc.h.
//
// All elements are f32. Rows of B and C are as long as the lanes rounded up to the vector's width. Each
// output keeps the order of docs/spec/numerics.md: N6 (kBf16 = false), or N7 on operands already widened to
// f32 (kBf16 = true).
#pragma once

#include <cstdint>

namespace ostro::machine {

struct ProductA {
  const float* p;
  int64_t row, k;  // strides
};

// One register tile of kRows x kVectors vectors over all k. `phase`: the index of the first k modulo 32.
//
// N6 is one chain of fused multiply-adds per output, which continues C. N7 has an even and an odd chain (e,
// o) per group of 32 k; their sum is added to C where the group ends. A first group that begins at an odd
// phase begins with the odd chain.
template <class V, bool kBf16, int kRows, int kVectors>
inline void product_tile(float* c, int64_t ldc, ProductA a, const float* b, int64_t ldb, int64_t count,
                         int phase, bool from_zero) {
  constexpr int kW = V::kWidth;
  if constexpr (!kBf16) {
    V acc[kRows][kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[i][v] = from_zero ? V::zero() : V::load(c + i * ldc + v * kW);
    const float* ap = a.p;
    for (int64_t k = 0; k < count; ++k, ap += a.k, b += ldb) {
      V bv[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        bv[v] = V::load(b + v * kW);
        V::keep(bv[v]);
      }
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const V av = V::set1(ap[i * a.row]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) acc[i][v] = V::fma(av, bv[v], acc[i][v]);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[i][v].store(c + i * ldc + v * kW);
  } else {
    const float* ap = a.p;
    int64_t k = 0;
    while (k < count) {
      V e[kRows][kVectors], o[kRows][kVectors];
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) e[i][v] = o[i][v] = V::zero();
      const auto step = [&](V(&chain)[kRows][kVectors]) __attribute__((always_inline)) {
        V bv[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          bv[v] = V::load(b + v * kW);
          V::keep(bv[v]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
          const V av = V::set1(ap[i * a.row]);
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) chain[i][v] = V::fma(av, bv[v], chain[i][v]);
        }
        ap += a.k;
        b += ldb;
      };
      int64_t end = k + 32 - phase;
      if (end > count) end = count;
      if ((phase & 1) != 0) {
        step(o);
        ++k;
      }
      for (; k + 2 <= end; k += 2) {
        step(e);
        step(o);
      }
      if (k < end) {
        step(e);
        ++k;
      }
      phase = 0;
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          float* out = c + i * ldc + v * kW;
          const V start = from_zero ? V::zero() : V::load(out);
          (start + (e[i][v] + o[i][v])).store(out);
        }
      from_zero = false;
    }
  }
}

// All rows of a strip of kVectors vectors: tiles as high as the registers allow, then of two rows, then of
// one.
template <class V, bool kBf16, int kVectors>
inline void product_columns(float* c, int64_t ldc, int64_t rows, ProductA a, const float* b, int64_t ldb,
                            int64_t count, int phase, bool from_zero) {
  constexpr int kRows = kBf16 ? V::kRowsBf16 : V::kRowsF32;
  int64_t i = 0;
  const auto at = [&](int64_t row) { return ProductA{a.p + row * a.row, a.row, a.k}; };
  for (; i + kRows <= rows; i += kRows)
    product_tile<V, kBf16, kRows, kVectors>(c + i * ldc, ldc, at(i), b, ldb, count, phase, from_zero);
  if constexpr (kRows > 2) {
    for (; i + 2 <= rows; i += 2)
      product_tile<V, kBf16, 2, kVectors>(c + i * ldc, ldc, at(i), b, ldb, count, phase, from_zero);
  }
  for (; i < rows; ++i)
    product_tile<V, kBf16, 1, kVectors>(c + i * ldc, ldc, at(i), b, ldb, count, phase, from_zero);
}

// C [rows][lanes] over `count` >= 1 values of k; from_zero: chains start at +0, else they continue C.
template <class V, bool kBf16>
void product(float* c, int64_t ldc, int64_t rows, int64_t lanes, ProductA a, const float* b, int64_t ldb,
             int64_t count, int phase, bool from_zero) {
  constexpr int kVectors = kBf16 ? V::kVectorsBf16 : V::kVectorsF32;
  constexpr int kW = V::kWidth;
  int64_t j = 0;
  for (; j + (kVectors - 1) * kW < lanes; j += kVectors * kW)
    product_columns<V, kBf16, kVectors>(c + j, ldc, rows, a, b + j, ldb, count, phase, from_zero);
  if constexpr (kVectors > 2) {
    for (; j + kW < lanes; j += 2 * kW)
      product_columns<V, kBf16, 2>(c + j, ldc, rows, a, b + j, ldb, count, phase, from_zero);
  }
  for (; j < lanes; j += kW)
    product_columns<V, kBf16, 1>(c + j, ldc, rows, a, b + j, ldb, count, phase, from_zero);
}

}  // namespace ostro::machine
