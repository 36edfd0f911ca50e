#include "products/operand.cuh"
#include "products/tensor_rule.cuh"
// Products by the rule of tensor cores (N23) on tensor cores that have it: 128 threads make 64 x 64 outputs, a warp 32 x 32 of them.
// They go through k in pieces of 32, two steps, which lie in shared memory as bf16. Without leaves. What lies beyond k is zero,
// and so no addend.
enum { TILE_SIDE = 64, TILE_K = 32, TILE_ROW = TILE_K + 8 };  // a row's length keeps neighbours in different banks

DEVICE u16 upper_half(float x) { return (u16)(bits32(x) >> 16); }

BLOCK_KERNEL(tensor_tiles, DotArgs) {
  SHARED(u32, tile_a, TILE_SIDE * TILE_ROW / 2);
  SHARED(u32, tile_b, TILE_SIDE * TILE_ROW / 2);
  const i64 first_m = BLOCK_Y * TILE_SIDE, first_n = BLOCK_X * TILE_SIDE;
  const i64* const batch = AT(const i64, a.batch) + BLOCK_Z * 3;
  const int lane = THREAD % 32, warp_m = THREAD / 32 % 2 * 32, warp_n = THREAD / 64 * 32;
  float c[2][4][4];
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const i64 m = first_m + warp_m + i * 16 + lane / 4 + r / 2 * 8, n = first_n + warp_n + j * 8 + lane % 4 * 2 + r % 2;
        c[i][j][r] = a.goes_on && m < a.m && n < a.n
                         ? AT(const float, a.c)[batch[2] + AT(const i64, a.c_row)[m] + AT(const i64, a.c_col)[n]]
                         : 0.0f;
      }
  for (i64 first_k = 0; first_k < a.k; first_k += TILE_K) {
    const int count = (int)(a.k - first_k < TILE_K ? a.k - first_k : TILE_K);
    for (int t = THREAD; t < TILE_SIDE * TILE_K; t += 128) {
      const int k = a.a_along_k ? t % TILE_K : t / TILE_SIDE, i = a.a_along_k ? t / TILE_K : t % TILE_SIDE;
      const i64 m = first_m + i;
      ((u16*)tile_a)[i * TILE_ROW + k] =
          m < a.m && k < count
              ? AT(const u16, a.a)[batch[0] + AT(const i64, a.a_row)[m] + AT(const i64, a.a_col)[first_k + k]]
              : (u16)0;
    }
    for (int t = THREAD; t < TILE_SIDE * TILE_K; t += 128) {
      const int k = a.b_along_k ? t % TILE_K : t / TILE_SIDE, j = a.b_along_k ? t / TILE_K : t % TILE_SIDE;
      const i64 n = first_n + j;
      u16 x = 0;
      if (n < a.n && k < count) {
        const bool stored = a.b_type == TYPE_I8;
        x = upper_half(operand_b(a, true, batch[1] + AT(const i64, a.b_row)[first_k + k] + AT(const i64, a.b_col)[n],
                                 stored ? AT(const i64, a.s_row)[first_k + k] + AT(const i64, a.s_col)[n] : 0));
      }
      ((u16*)tile_b)[j * TILE_ROW + k] = x;
    }
    BARRIER();
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      const int word = step * 8 + lane % 4;
      u32 left[2][4], right[4][2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r)
          left[i][r] = tile_a[(warp_m + i * 16 + lane / 4 + r % 2 * 8) * (TILE_ROW / 2) + word + r / 2 * 4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) right[j][r] = tile_b[(warp_n + j * 8 + lane / 4) * (TILE_ROW / 2) + word + r * 4];
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma_tensor_rule(c[i][j], left[i], right[j]);
    }
    BARRIER();
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const i64 m = first_m + warp_m + i * 16 + lane / 4 + r / 2 * 8, n = first_n + warp_n + j * 8 + lane % 4 * 2 + r % 2;
        if (m < a.m && n < a.n)
          store_float(a.c, a.c_type, batch[2] + AT(const i64, a.c_row)[m] + AT(const i64, a.c_col)[n], c[i][j][r]);
      }
}
