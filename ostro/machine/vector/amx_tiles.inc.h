// amx_multiply_16, amx_multiply_32: products of bf16 tiles on AMX, for matrix products and attention. Only
// for files built with AMX.
//
// lda, ldb, ldc and a_step count words of 4 bytes. A row of A holds the 16 words of one group of 32 k; rows
// are lda apart, groups a_step apart. B has 16 rows of words a group, ldb apart, and 32 columns. C is f32;
// its sums are continued, unless from_zero.
//
// One TDPBF16PS per 16 x 16 outputs and group of 32 k is docs/spec/numerics.md N7 itself; MXCSR does not
// affect it. A thread calls amx_enter() before its products and amx_leave() after them.
#pragma once

#include <immintrin.h>

#include "ostro/machine/vector/amx_config.h"

namespace ostro::machine {
namespace {

inline void amx_enter() { _tile_loadconfig(&kAmxConfig); }
inline void amx_leave() { _tile_release(); }

// A compiler barrier. gcc's tile loads do not declare that they read memory, so earlier writes must be forced
// to finish before them.
inline void amx_before_loads() { __asm__ volatile("" ::: "memory"); }

// 16 x 32 outputs.
inline void amx_multiply_16(float* c, int64_t ldc, const uint32_t* a, int64_t lda, int64_t a_step,
                            const uint32_t* b, int64_t ldb, int64_t groups, bool from_zero) {
  amx_before_loads();
  if (from_zero) {
    _tile_zero(0);
    _tile_zero(1);
  } else {
    _tile_loadd(0, c, ldc * 4);
    _tile_loadd(1, c + 16, ldc * 4);
  }
  for (int64_t g = 0; g < groups; ++g, a += a_step, b += 16 * ldb) {
    _tile_loadd(4, a, lda * 4);
    _tile_loadd(6, b, ldb * 4);
    _tile_loadd(7, b + 16, ldb * 4);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
  _tile_stored(0, c, ldc * 4);
  _tile_stored(1, c + 16, ldc * 4);
}

// 32 x 32 outputs; the lower rows of A lie 16 lda behind the upper.
inline void amx_multiply_32(float* c, int64_t ldc, const uint32_t* a, int64_t lda, int64_t a_step,
                            const uint32_t* b, int64_t ldb, int64_t groups, bool from_zero) {
  amx_before_loads();
  float* low = c + 16 * ldc;
  if (from_zero) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, c, ldc * 4);
    _tile_loadd(1, c + 16, ldc * 4);
    _tile_loadd(2, low, ldc * 4);
    _tile_loadd(3, low + 16, ldc * 4);
  }
  for (int64_t g = 0; g < groups; ++g, a += a_step, b += 16 * ldb) {
    _tile_loadd(6, b, ldb * 4);
    _tile_loadd(4, a, lda * 4);
    _tile_loadd(7, b + 16, ldb * 4);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, a + 16 * lda, lda * 4);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, ldc * 4);
  _tile_stored(1, c + 16, ldc * 4);
  _tile_stored(2, low, ldc * 4);
  _tile_stored(3, low + 16, ldc * 4);
}

}  // namespace
}  // namespace ostro::machine
