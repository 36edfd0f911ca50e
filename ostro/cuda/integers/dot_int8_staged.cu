#include "integers/blocks.cuh"
// Products of integers (N20) whose rows and blocks are whole words of 16 bytes. A warp makes 64 x 32 outputs by MMA_S8, WARPS_M *
// WARPS_N warps a tile. They go through k in pieces of 64 that begin anew with each block; what lies beyond a block is 0 there.
// STAGES pieces lie in shared memory, all but one of them on their way. Word u of a row, of 16 bytes, is in place u xor row / 2 % 4:
// so LOAD_MATRICES finds 8 words in all banks.

enum { WARPS_M = 2, WARPS_N = 4, TILE_M = 64 * WARPS_M, TILE_N = 32 * WARPS_N, TILE_THREADS = 32 * WARPS_M * WARPS_N };
enum { PIECE = 64, ROW_WORDS = PIECE / 16, TILE_ROWS = TILE_M + TILE_N, STAGES = 3, STAGE_WORDS = TILE_ROWS * ROW_WORDS };
enum { COPIES = STAGE_WORDS / TILE_THREADS };  // of a thread and piece; and TILE_ROWS is TILE_THREADS: each copies one scale

// Where a piece begins, and where its block ends.
struct PieceAt {
  i32 k, end, block;
};
DEVICE i32 end_of(const DotInt8Args& a, i32 begin) { return a.block < a.size - begin ? begin + (i32)a.block : (i32)a.size; }
DEVICE void go_on(const DotInt8Args& a, PieceAt& p) {
  p.k += PIECE;
  if (p.k < p.end) return;
  p = {p.end, end_of(a, p.end), p.block + 1};
}

// What a thread copies: words of these rows of a and b, and the scales of one row. 0: there is no such row.
struct Sources {
  u64 words[COPIES], scale;
};
DEVICE u64 row_at(const DotInt8Args& a, int row, u64 of_a, u64 of_b, i64 bytes) {
  const bool left = row < TILE_M;
  const i64 i = left ? BLOCK_Y * TILE_M + row : BLOCK_X * TILE_N + row - TILE_M;
  return i < (left ? a.m : a.n) ? (left ? of_a : of_b) + (u64)(i * bytes) : 0;
}
DEVICE Sources sources_of(const DotInt8Args& a) {
  Sources from = {{0}, row_at(a, THREAD, a.a_scales, a.b_scales, a.blocks * 4)};
#pragma unroll
  for (int i = 0; i < COPIES; ++i) from.words[i] = row_at(a, (THREAD + i * TILE_THREADS) / ROW_WORDS, a.a, a.b, a.size);
  return from;
}

// Begins to copy a piece, and with the last piece of a block its scales.
DEVICE void copy_piece(const DotInt8Args& a, const Sources& from, const PieceAt& p, Words16* piece, float* scales) {
  const i32 k = p.k + THREAD % ROW_WORDS * 16;
  const int place = THREAD ^ THREAD / 8 % 4;
#pragma unroll
  for (int i = 0; i < COPIES; ++i) {
    const bool inside = k < p.end && from.words[i] != 0;
    COPY16(piece + place + i * TILE_THREADS, inside ? from.words[i] + (u64)k : a.a, inside ? 16 : 0);
  }
  if (p.k + PIECE < p.end) return;
  const bool inside = from.scale != 0;
  COPY4(scales + THREAD, inside ? from.scale + (u64)p.block * 4 : a.a_scales, inside ? 4 : 0);
}

BLOCK_KERNEL(dot_int8_staged, DotInt8Args) {
  DYNAMIC_SHARED(Words16, pieces);
  SHARED(float, scales, STAGES * TILE_ROWS);
  const int lane = THREAD % 32, warp = THREAD / 32, warp_m = warp % WARPS_M * 64, warp_n = warp / WARPS_M * 32;
  const i64 first_m = BLOCK_Y * TILE_M, first_n = BLOCK_X * TILE_N;
  const Sources from = sources_of(a);
  // The row and word whose address a thread gives: matrices are 8 rows by one word; of a two lie below each other, then two beside
  // them, of b the other way round.
  const int x_row = (warp_m + lane % 16) * ROW_WORDS, x_word = lane / 16 ^ lane / 2 % 4;
  const int y_row = (TILE_M + warp_n + lane % 8 + lane / 16 * 8) * ROW_WORDS, y_word = lane / 8 % 2 ^ lane / 2 % 4;
  float c[4][4][4];
  i32 sum[4][4][4];
#pragma unroll
  for (int i = 0; i < 64; ++i) c[i / 16][i / 4 % 4][i % 4] = 0, sum[i / 16][i / 4 % 4][i % 4] = 0;
  if (a.goes_on) load_outputs(a, first_m + warp_m + lane / 4, first_n + warp_n + lane % 4 * 2, c);
  PieceAt now = {0, end_of(a, 0), 0}, ahead = now;
  for (int s = 0; s < STAGES - 1; ++s) {
    if (ahead.k < a.size) copy_piece(a, from, ahead, pieces + s * STAGE_WORDS, scales + s * TILE_ROWS);
    COPIES_END();
    go_on(a, ahead);
  }
  for (int stage = 0; now.k < a.size; stage = stage + 1 < STAGES ? stage + 1 : 0) {
    COPIES_WAIT(STAGES - 2);
    BARRIER();
    const int free = stage > 0 ? stage - 1 : STAGES - 1;
    if (ahead.k < a.size) copy_piece(a, from, ahead, pieces + free * STAGE_WORDS, scales + free * TILE_ROWS);
    COPIES_END();
    go_on(a, ahead);
    const Words16 *const x = pieces + stage * STAGE_WORDS + x_row, *const y = pieces + stage * STAGE_WORDS + y_row;
#pragma unroll
    for (int u = 0; u < ROW_WORDS; u += 2) {
      u32 of_b[2][4];
#pragma unroll
      for (int j = 0; j < 2; ++j) LOAD_MATRICES(of_b[j], y + j * 16 * ROW_WORDS + (y_word ^ u));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        u32 of_a[4];
        LOAD_MATRICES(of_a, x + i * 16 * ROW_WORDS + (x_word ^ u));
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const u32 column[2] = {of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1]};
          MMA_S8(sum[i][j], of_a, column);
        }
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
