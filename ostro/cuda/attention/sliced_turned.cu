#include "attention/masks.cuh"
#include "attention/rows.cuh"
#include "attention/slices.cuh"
// Cuts the rows of an operand into slices (N21) for the kernels by tiles, 128 rows a block of threads: as rows of `wide` numbers, and turned, by
// blocks of 128 whose rows lie in the order of sliced_tiles.cuh. Blocks of queries are by absolute position, so the first may begin before row 0.

BLOCK_KERNEL(attention_slices_turned, AttentionSlicesArgs) {
  SHARED(u8, cut_rows, PIECE * 2 * 128);
  const i64 h = BLOCK_Y, b = BLOCK_Z, head = b * a.heads + h, lane = THREAD % 32;
  i64 place = 0;  // of row 0 in its block
  if (a.origin.at != 0) place = (attention_integer(a.origin, place_of(a.origin, b, 0, 0)) % PIECE + PIECE) % PIECE;
  for (i64 i = THREAD / 32; i < PIECE; i += THREADS / 32) {
    const i64 row = BLOCK_X * PIECE + i - place;
    const bool inside = row >= 0 && row < a.rows;
    const i64 at = inside ? place_of(a.x, b, h * a.head_step, row) : 0;
    u32 largest = 0;
    for (i64 d = lane; d < a.head_dim && inside; d += 32) largest = larger_magnitude(largest, attention_element(a.x, at, d));
    const SliceCut cut = slice_cut(largest_of_warp(largest));
    if (lane == 0 && inside) AT(float, a.to.scales)[head * a.rows + row] = cut.scale;
    for (i64 d = lane; d < a.wide; d += 32) {
      const Slices s = inside && d < a.head_dim ? slices_of(attention_element(a.x, at, d), cut) : Slices{0, 0};
      cut_rows[i * 2 * a.wide + d] = (u8)s.high;
      cut_rows[(i * 2 + 1) * a.wide + d] = (u8)s.low;
      if (!inside || a.to.integers == 0) continue;
      i8* const to = AT(i8, a.to.integers) + (head * a.rows + row) * 2 * a.wide + d;
      to[0] = (i8)s.high;
      to[a.wide] = (i8)s.low;
    }
  }
  if (a.to.turned == 0) return;
  BARRIER();
  u32* const turned = AT(u32, a.to.turned) + (head * a.blocks + BLOCK_X) * a.wide * 64;
  for (i64 t = THREAD; t < a.wide * 64; t += THREADS) {
    const i64 d = t / 64, slice = t / 32 % 2, word = t % 32, first = word / 4 * 16 + word % 4 * 2;
    const u8* const from = cut_rows + slice * a.wide + d;
    const i64 step = 2 * a.wide;
    turned[t] = BYTES4((u32)from[first * step], (u32)from[(first + 1) * step], (u32)from[(first + 8) * step], (u32)from[(first + 9) * step]);
  }
}
