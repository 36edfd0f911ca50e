#include "integers/blocks.cu"
// Products of integers (N20) whose rows and blocks are whole words of 16 bytes. A warp makes 64 x 32 outputs by MMA_S8, WARPS_M *
// WARPS_N warps a tile. They go through k in pieces of 64 that begin anew with each block; what lies beyond a block is 0 there.
// STAGES pieces lie in shared memory, all but one of them on their way. A thread reads 16 neighbouring bytes of a row, which take
// the places of 2 * 2 words in two MMA_S8: inside a block the numbers have no order, and those of a and b lie alike.

enum { WARPS_M = 2, WARPS_N = 4, TILE_M = 64 * WARPS_M, TILE_N = 32 * WARPS_N, TILE_THREADS = 32 * WARPS_M * WARPS_N };
enum { PIECE = 64, ROW_WORDS = PIECE / 16, TILE_ROWS = TILE_M + TILE_N, STAGES = 3 };

// Where a piece begins, and where its block ends.
struct PieceAt {
  i64 k, end, block;
};
DEVICE i64 end_of(const DotInt8Args& a, i64 begin) { return begin + a.block < a.size ? begin + a.block : a.size; }
DEVICE void go_on(const DotInt8Args& a, PieceAt& p) {
  p.k += PIECE;
  if (p.k < p.end) return;
  p = {p.end, end_of(a, p.end), p.block + 1};
}

// Begins to copy a piece of the tile's rows, a's before b's, and with the last piece of a block its scales.
DEVICE void copy_piece(const DotInt8Args& a, i64 first_m, i64 first_n, const PieceAt& p, Words16* piece, float* scales) {
#pragma unroll
  for (int i = THREAD; i < TILE_ROWS * ROW_WORDS; i += TILE_THREADS) {
    const bool left = i < TILE_M * ROW_WORDS;
    const i64 row = left ? first_m + i / ROW_WORDS : first_n + i / ROW_WORDS - TILE_M, k = p.k + i % ROW_WORDS * 16;
    const bool inside = row < (left ? a.m : a.n) && k < p.end;
    const u64 from = (left ? a.a : a.b) + (u64)(inside ? row * a.size + k : 0);
    COPY16(piece + i, from, inside ? 16 : 0);
  }
  if (p.k + PIECE < p.end) return;
  for (int i = THREAD; i < TILE_ROWS; i += TILE_THREADS) {
    const bool left = i < TILE_M;
    const i64 row = left ? first_m + i : first_n + i - TILE_M;
    const bool inside = row < (left ? a.m : a.n);
    COPY4(scales + i, (left ? a.a_scales : a.b_scales) + (u64)(inside ? row * a.blocks + p.block : 0) * 4, inside ? 4 : 0);
  }
}

// Stores outputs n and n + 1 of row m.
DEVICE void store_two(const DotInt8Args& a, i64 m, i64 n, float x, float y) {
  if (m >= a.m || n >= a.n) return;
  if (a.n % 2 != 0) {
    store_float(a.to, a.to_type, m * a.n + n, x);
    if (n + 1 < a.n) store_float(a.to, a.to_type, m * a.n + n + 1, y);
  } else if (a.to_type == TYPE_BF16) {
    AT(u32, a.to)[(m * a.n + n) / 2] = bits32(round_bf16(x)) >> 16 | (bits32(round_bf16(y)) & 0xffff0000u);
  } else {
    AT(Words8, a.to)[(m * a.n + n) / 2] = {{bits32(x), bits32(y)}};
  }
}

BLOCK_KERNEL(dot_int8_staged, DotInt8Args) {
  DYNAMIC_SHARED(Words16, pieces);
  SHARED(float, scales, STAGES * TILE_ROWS);
  const int lane = THREAD % 32, warp = THREAD / 32, warp_m = warp % WARPS_M * 64, warp_n = warp / WARPS_M * 32;
  const i64 first_m = BLOCK_Y * TILE_M, first_n = BLOCK_X * TILE_N;
  float c[4][4][4];
  i32 sum[4][4][4];
#pragma unroll
  for (int i = 0; i < 64; ++i) c[i / 16][i / 4 % 4][i % 4] = 0, sum[i / 16][i / 4 % 4][i % 4] = 0;
  PieceAt now = {0, end_of(a, 0), 0}, ahead = now;
  for (int s = 0; s < STAGES - 1; ++s) {
    if (ahead.k < a.size) copy_piece(a, first_m, first_n, ahead, pieces + s * TILE_ROWS * ROW_WORDS, scales + s * TILE_ROWS);
    COPIES_END();
    go_on(a, ahead);
  }
  for (int stage = 0; now.k < a.size; stage = stage + 1 < STAGES ? stage + 1 : 0) {
    COPIES_WAIT(STAGES - 2);
    BARRIER();
    const int free = stage > 0 ? stage - 1 : STAGES - 1;
    if (ahead.k < a.size)
      copy_piece(a, first_m, first_n, ahead, pieces + free * TILE_ROWS * ROW_WORDS, scales + free * TILE_ROWS);
    COPIES_END();
    go_on(a, ahead);
    const Words16 *const x = pieces + (stage * TILE_ROWS + warp_m) * ROW_WORDS + lane;
    const Words16 *const y = pieces + (stage * TILE_ROWS + TILE_M + warp_n) * ROW_WORDS + lane;
    Words16 right[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) right[j] = y[j * 8 * ROW_WORDS];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Words16 upper = x[i * 16 * ROW_WORDS], lower = x[(i * 16 + 8) * ROW_WORDS];
#pragma unroll
      for (int w = 0; w < 4; w += 2)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const u32 of_a[4] = {upper.w[w], lower.w[w], upper.w[w + 1], lower.w[w + 1]}, of_b[2] = {right[j].w[w], right[j].w[w + 1]};
          MMA_S8(sum[i][j], of_a, of_b);
        }
    }
    if (now.k + PIECE >= now.end) {
      const float *const a_scale = scales + stage * TILE_ROWS + warp_m + lane / 4;
      const float *const b_scale = scales + stage * TILE_ROWS + TILE_M + warp_n + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
          for (int r = 0; r < 4; ++r) {
            c[i][j][r] = add_block(c[i][j][r], sum[i][j][r], a_scale[i * 16 + r / 2 * 8], b_scale[j * 8 + r % 2]);
            sum[i][j][r] = 0;
          }
    }
    go_on(a, now);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int r = 0; r < 4; r += 2)
        store_two(a, first_m + warp_m + 16 * i + lane / 4 + r / 2 * 8, first_n + warp_n + 8 * j + lane % 4 * 2, c[i][j][r],
                  c[i][j][r + 1]);
}
