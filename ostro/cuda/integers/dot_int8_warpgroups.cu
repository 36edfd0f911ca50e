#include "integers/blocks.cuh"
#include "text/warpgroups.cuh"
// Products of integers (N20) on the tensor cores of compute capability 9.0: 384 threads make 128 x 128 outputs. The first warpgroup copies, pieces of 256
// along k of both operands and the scales of their rows, into STAGES places in turn; the other two each multiply 64 rows. Blocks are multiples
// of 256, so a piece lies in one of them; what is beyond k and beyond the last row is zero.

enum { TILE = 128, PIECE = 256, HALF = 128, STAGES = 3 };
enum { HALF_BYTES = TILE * HALF, STAGE_BYTES = 2 * PIECE * TILE, TILE_ALIGNMENT = 1024, TILES_TOGETHER = 16 };

// Where the tile of a block of threads begins. Blocks that run together share operands: 16 tiles below each other, then the next column.
struct TilePlace {
  i64 m, n;
};
DEVICE TilePlace tile_place(const DotInt8Args& a) {
  const i64 rows = (a.m + TILE - 1) / TILE, columns = (a.n + TILE - 1) / TILE, first = BLOCK_X / (TILES_TOGETHER * columns) * TILES_TOGETHER;
  const i64 together = rows - first < TILES_TOGETHER ? rows - first : TILES_TOGETHER, at = BLOCK_X % (TILES_TOGETHER * columns);
  return {(first + at % together) * TILE, at / together * TILE};
}

#if HOPPER
// The places of pieces: halves of 128 bytes a row, a's and then b's; the scales of a's rows and of b's; what ends when a piece is there, and when it
// was used.
struct Stages {
  u8* pieces;
  float* scales;
  MBarrier *full, *empty;
};

DEVICE void copy_pieces(const DotInt8TilesArgs& args, const Stages& stages, const TilePlace& place, i32 pieces) {
  const DotInt8Args& a = args.dot;
  const i64 row = place.m + THREAD, column = place.n + THREAD;
  const i32 pieces_of_block = (i32)(a.block / PIECE);
  for (i32 piece = 0, stage = 0; piece < pieces; ++piece, stage = stage + 1 < STAGES ? stage + 1 : 0) {
    if (piece >= STAGES) MBARRIER_WAIT(stages.empty + stage, (piece / STAGES - 1) & 1);
    if (THREAD == 0) {
      MBARRIER_EXPECT(stages.full + stage, STAGE_BYTES);
      u8* const to = stages.pieces + stage * STAGE_BYTES;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        COPY_TILE(to + half * 2 * HALF_BYTES, args.a_map, stages.full + stage, piece * PIECE + half * HALF, (i32)place.m);
        COPY_TILE(to + (half * 2 + 1) * HALF_BYTES, args.b_map, stages.full + stage, piece * PIECE + half * HALF, (i32)place.n);
      }
    }
    float* const scales = stages.scales + stage * 2 * TILE + THREAD;
    const i64 block = piece / pieces_of_block;
    COPY4(scales, row < a.m ? a.a_scales + (u64)(row * a.blocks + block) * 4 : a.a_scales, row < a.m ? 4 : 0);
    COPY4(scales + TILE, column < a.n ? a.b_scales + (u64)(column * a.blocks + block) * 4 : a.b_scales, column < a.n ? 4 : 0);
    COPIES_ARRIVE(stages.full + stage);
  }
}

DEVICE void multiply_pieces(const DotInt8Args& a, const Stages& stages, const TilePlace& place, i32 pieces) {
  const int half_of_rows = THREAD / 128 - 1, lane = THREAD % 32, first_row = half_of_rows * 64 + THREAD % 128 / 32 * 16 + lane / 4;
  const i64 m = place.m + first_row, n = place.n + lane % 4 * 2;
  const i32 pieces_of_block = (i32)(a.block / PIECE);
  float c[64];
  i32 sum[64];
#pragma unroll
  for (int r = 0; r < 64; ++r) {
    const i64 row = m + r / 2 % 2 * 8, column = n + r / 4 * 8 + r % 2;
    c[r] = a.goes_on && row < a.m && column < a.n ? AT(const float, a.to)[row * a.n + column] : 0.0f;
  }
  i32 of_block = 0;
  for (i32 piece = 0, stage = 0; piece < pieces; ++piece, stage = stage + 1 < STAGES ? stage + 1 : 0) {
    MBARRIER_WAIT(stages.full + stage, piece / STAGES & 1);
    PRODUCTS_BEGIN();
    const u8* const x = stages.pieces + stage * STAGE_BYTES + half_of_rows * 64 * HALF;
    const u8* const y = stages.pieces + stage * STAGE_BYTES + HALF_BYTES;
#pragma unroll
    for (int k = 0; k < PIECE; k += 32) WGMMA_S8(sum, x + k / HALF * 2 * HALF_BYTES + k % HALF, y + k / HALF * 2 * HALF_BYTES + k % HALF, of_block + k);
    const float *const a_scale = stages.scales + stage * 2 * TILE + first_row, *const b_scale = stages.scales + stage * 2 * TILE + TILE + lane % 4 * 2;
    const float upper = a_scale[0], lower = a_scale[8];
    PRODUCTS_WAIT(sum);
    ++of_block;
    if (of_block == pieces_of_block || piece + 1 == pieces) {
      of_block = 0;
#pragma unroll
      for (int r = 0; r < 64; ++r) c[r] = add_block(c[r], sum[r], r / 2 % 2 == 0 ? upper : lower, b_scale[r / 4 * 8 + r % 2]);
    }
    WARP_BARRIER();
    if (lane == 0) MBARRIER_ARRIVE(stages.empty + stage);
  }
#pragma unroll
  for (int r = 0; r < 64; r += 2) store_two(a, m + r / 2 % 2 * 8, n + r / 4 * 8, c[r], c[r + 1]);
}
#endif

TILED_KERNEL(dot_int8_warpgroups, DotInt8TilesArgs, 384, 1) {
#if HOPPER
  DYNAMIC_SHARED(u8, bytes);
  u8* const begin = bytes + (TILE_ALIGNMENT - SHARED_ADDRESS(bytes) % TILE_ALIGNMENT) % TILE_ALIGNMENT;
  float* const scales = (float*)(begin + STAGES * STAGE_BYTES);
  MBarrier* const full = (MBarrier*)(scales + STAGES * 2 * TILE);
  const Stages stages = {begin, scales, full, full + STAGES};
  if (THREAD == 0) {
    for (int s = 0; s < STAGES; ++s) {
      MBARRIER_INIT(stages.full + s, 128 + 1);  // the scales of each thread, and the tiles
      MBARRIER_INIT(stages.empty + s, 8);       // warps that multiply
    }
    MBARRIERS_READY();
  }
  BARRIER();
  const TilePlace place = tile_place(a.dot);
  const i32 pieces = (i32)((a.dot.size + PIECE - 1) / PIECE);
  if (THREAD < 128) {
    FEWER_REGISTERS(40);
    copy_pieces(a, stages, place, pieces);
  } else {
    MORE_REGISTERS(232);
    multiply_pieces(a.dot, stages, place, pieces);
  }
#endif
}
