#include "integers/blocks.cuh"
// Products of integers (N20). The sum inside a block is exact, in any order; the chain over blocks of an output stays in one
// thread.

// One thread an output.
KERNEL(dot_int8, DotInt8Args) {
  const i64 t = global_thread();
  if (t >= a.m * a.n) return;
  const i64 i = t / a.n, j = t % a.n;
  store_float(a.to, a.to_type, t, integer_dot(a, i, j, a.aligned >= 4, a.goes_on ? AT(const float, a.to)[t] : 0.0f));
}

// Tiles: 256 threads make 128 x 128 outputs, a warp 64 x 32 of them by MMA_S8. They go through k in pieces of 64 that begin
// anew with each block; what lies beyond a block is 0 there. One piece lies in shared memory while the next one is read.
enum { TILE = 128, PIECE = 64, TILE_WORDS = PIECE / 4, TILE_STRIDE = TILE_WORDS + 4 };

// Bytes k to k + 15 of a row, 0 from `end` on and where there is no such row.
DEVICE Words16 load_words16(u64 from, bool inside, i64 row, i64 k, i64 end, const DotInt8Args& a) {
  Words16 x = {{0, 0, 0, 0}};
  if (!inside || k >= end) return x;
  const u64 at = from + row * a.size + k;
  if (a.aligned == 16) return *AT(const Words16, at);
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (k + i < end) x.w[i / 4] |= (u32)AT(const u8, at)[i] << (i % 4 * 8);
  return x;
}

struct Piece {
  Words16 a[2], b[2];
};
DEVICE Piece load_piece(const DotInt8Args& a, i64 first_m, i64 first_n, i64 k, i64 end) {
  Piece p;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = (THREAD + 256 * h) / 4, at = THREAD % 4 * 16;
    p.a[h] = load_words16(a.a, first_m + row < a.m, first_m + row, k + at, end, a);
    p.b[h] = load_words16(a.b, first_n + row < a.n, first_n + row, k + at, end, a);
  }
  return p;
}
DEVICE void store_piece(const Piece& p, u32* tile_a, u32* tile_b) {
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = (THREAD + 256 * h) / 4 * TILE_STRIDE + THREAD % 4 * 4 + i;
      tile_a[at] = p.a[h].w[i];
      tile_b[at] = p.b[h].w[i];
    }
}

BLOCK_KERNEL(dot_int8_tiles, DotInt8Args) {
  SHARED(u32, tile_a, 2 * TILE * TILE_STRIDE);
  SHARED(u32, tile_b, 2 * TILE * TILE_STRIDE);
  const int lane = THREAD % 32, warp = THREAD / 32, warp_m = warp % 2 * 64, warp_n = warp / 2 * 32;
  const i64 first_m = BLOCK_Y * TILE, first_n = BLOCK_X * TILE;
  const bool has_outputs = first_m + warp_m < a.m && first_n + warp_n < a.n;
  float c[4][4][4];
  i32 sum[4][4][4];
#pragma unroll
  for (int i = 0; i < 64; ++i) c[i / 16][i / 4 % 4][i % 4] = 0, sum[i / 16][i / 4 % 4][i % 4] = 0;
  if (a.goes_on) load_outputs(a, first_m + warp_m + lane / 4, first_n + warp_n + lane % 4 * 2, c);
  i64 k = 0, end = a.block < a.size ? a.block : a.size;
  if (a.size > 0) store_piece(load_piece(a, first_m, first_n, k, end), tile_a, tile_b);
  BARRIER();
  int half = 0;
  for (i64 block = 0; block < a.blocks;) {
    const bool block_ends = k + PIECE >= end;
    const i64 next = block_ends ? end : k + PIECE;
    const i64 next_end = !block_ends ? end : end + a.block < a.size ? end + a.block : a.size;
    Piece ahead;
    if (next < a.size) ahead = load_piece(a, first_m, first_n, next, next_end);
    const u32 *const x = tile_a + half * TILE * TILE_STRIDE, *const y = tile_b + half * TILE * TILE_STRIDE;
#pragma unroll
    for (int w = 0; w < TILE_WORDS; w += 8) {
      if (!has_outputs || k + w * 4 >= end) break;
      u32 left[4][4], right[4][2];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const u32* const at = x + (warp_m + 16 * i + lane / 4) * TILE_STRIDE + w + lane % 4;
        left[i][0] = at[0], left[i][1] = at[8 * TILE_STRIDE], left[i][2] = at[4], left[i][3] = at[8 * TILE_STRIDE + 4];
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const u32* const at = y + (warp_n + 8 * j + lane / 4) * TILE_STRIDE + w + lane % 4;
        right[j][0] = at[0], right[j][1] = at[4];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) MMA_S8(sum[i][j], left[i], right[j]);
    }
    if (block_ends) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
          for (int r = 0; r < 4; ++r) {
            const i64 m = first_m + warp_m + 16 * i + lane / 4 + r / 2 * 8, n = first_n + warp_n + 8 * j + lane % 4 * 2 + r % 2;
            if (m < a.m && n < a.n)
              c[i][j][r] = add_block(c[i][j][r], sum[i][j][r], AT(const float, a.a_scales)[m * a.blocks + block],
                                     AT(const float, a.b_scales)[n * a.blocks + block]);
            sum[i][j][r] = 0;
          }
      ++block;
    }
    half = 1 - half;
    if (next < a.size) store_piece(ahead, tile_a + half * TILE * TILE_STRIDE, tile_b + half * TILE * TILE_STRIDE);
    BARRIER();
    k = next, end = next_end;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const i64 m = first_m + warp_m + 16 * i + lane / 4 + r / 2 * 8, n = first_n + warp_n + 8 * j + lane % 4 * 2 + r % 2;
        if (m < a.m && n < a.n) store_float(a.to, a.to_type, m * a.n + n, c[i][j][r]);
      }
}
