#include "integers/blocks.cuh"
// Quantise (N20) at the rate of memory. Numbers lie next to each other in whole words of 16 bytes, and a block has at most 256 of
// them: they are read once, and stay with their thread between the search of the largest and the rounding. Four neighbours whose
// draws come from one block of threefry share it.

// q = the integers of four numbers, in the lowest bytes; the numbers have the draws `number` to number + 3.
DEVICE void round_four(const QuantizeArgs& a, const Dither& of, u64 number, const float (&t)[4], u32 (&q)[4]) {
  if (a.key == 0) {
#pragma unroll
    for (int i = 0; i < 4; ++i) q[i] = bits32(t[i] + 0x1.8p23f);  // to nearest, ties to even
    return;
  }
  u32 draws[4] = {0, 0, 0, 0};
  if (number % 4 == 0) {
    const Words x = threefry(of.k0, of.k1, (u32)(number >> 34), (u32)(number >> 2));
    draws[0] = x.x0 << 7, draws[1] = x.x0 >> 9, draws[2] = x.x1 << 7, draws[3] = x.x1 >> 9;
  } else {
    Dither own = of;
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      draws[0] = draws[1], draws[1] = draws[2], draws[2] = draws[3];
      draws[3] = dither_bits(own, number + (u64)i) << 7;
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float u_and_1 = f32_of((draws[i] & 0x007fff80u) | 0x3f800040u);
    q[i] = FLOOR_BYTE(t[i] + (u_and_1 - 1.0f));
  }
}

// Along memory: a warp takes block after block; a thread has 8 numbers of it, in two halves of neighbours.
template <bool NARROW>
DEVICE int half_at(int h) {
  return NARROW ? THREAD % 32 * 8 + h * 4 : h * 128 + THREAD % 32 * 4;
}
template <bool NARROW>
DEVICE void load_block(const QuantizeArgs& a, u32 unit, Words16 (&x)[NARROW ? 1 : 2]) {
  const u32 row = unit / (u32)a.blocks, block = unit % (u32)a.blocks;
  const i64 first = block * a.block, left = a.size - first < a.block ? a.size - first : a.block;
  const u64 from = a.from + (u64)(row * a.row.step + first) * (NARROW ? 2 : 4);
#pragma unroll
  for (int h = 0; h < (NARROW ? 1 : 2); ++h) {
    x[h] = {{0, 0, 0, 0}};
    if (half_at<NARROW>(h) < left) x[h] = *AT(const Words16, from + half_at<NARROW>(h) * (NARROW ? 2 : 4));
  }
}
template <bool NARROW>
DEVICE void quantize_whole(const QuantizeArgs& a) {
  const u32 units = (u32)(a.rows * a.blocks), warps = (u32)a.warps;
  u32 unit = (u32)(global_thread() / 32);
  if (unit >= units) return;
  Words16 x[NARROW ? 1 : 2], next[NARROW ? 1 : 2];
  load_block<NARROW>(a, unit, next);
  const QuantizedRow origin = quantized_row(a, 0);
  for (; unit < units; unit += warps) {
#pragma unroll
    for (int i = 0; i < (NARROW ? 1 : 2); ++i) x[i] = next[i];
    if (unit + warps < units) load_block<NARROW>(a, unit + warps, next);
    u32 largest = 0;
    float t[2][4];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      t[i / 4][i % 4] = NARROW ? number_of<true>(x[0], i) : number_of<false>(x[i / 4 % (NARROW ? 1 : 2)], i % 4);
      largest = larger_magnitude(largest, t[i / 4][i % 4]);
    }
    const Cut cut = cut_of(largest_of_warp(largest));
    const u32 row = unit / (u32)a.blocks, block = unit % (u32)a.blocks;
    const i64 first = block * a.block, left = a.size - first < a.block ? a.size - first : a.block;
    const u64 number = origin.draw + (u64)(row * a.row_draw.step + first * a.k_draw.step);
    u32 words[2] = {0, 0};
    if (cut.up != 0.0f)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int i = 0; i < 4; ++i) t[h][i] = t[h][i] * cut.up;
        u32 q[4];
        round_four(a, origin.dither, number + (u64)half_at<NARROW>(h), t[h], q);
        words[h] = BYTES4(q[0], q[1], q[2], q[3]);
      }
    const u64 to = a.q + (u64)(row * a.size + first);
    if (NARROW) {
      if (half_at<NARROW>(0) < left) *AT(Words8, to + half_at<NARROW>(0)) = {{words[0], words[1]}};
    } else {
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if (half_at<NARROW>(h) < left) *AT(u32, to + half_at<NARROW>(h)) = words[h];
    }
    if (THREAD % 32 == 0) AT(float, a.scales)[unit] = cut.scale;
  }
}
BLOCK_KERNEL(quantize_whole_f32, QuantizeArgs) { quantize_whole<false>(a); }
BLOCK_KERNEL(quantize_whole_bf16, QuantizeArgs) { quantize_whole<true>(a); }

// Across memory: neighbours are numbers of different rows. 256 threads take a block of 8 * V rows, where a word has V numbers; a
// thread has 8 k of V rows. The integers are turned in shared memory: 16 bytes of a row at k = 16 u are in place u xor row / V.
template <bool NARROW>
DEVICE void quantize_turned(const QuantizeArgs& a) {
  enum { V = NARROW ? 8 : 4, ROWS = 8 * V };
  SHARED(Words16, turned, ROWS * 16);
  SHARED(u32, most, 8 * ROWS);
  SHARED(float, ups, ROWS);
  const u32 chunks = (u32)((a.rows + ROWS - 1) / ROWS), block = (u32)BLOCK_X / chunks, first_row = (u32)BLOCK_X % chunks * ROWS;
  const i64 first = block * a.block, left = a.size - first < a.block ? a.size - first : a.block;
  const int lane = THREAD % 32, part = lane % 8, k = THREAD / 8 * 8, row = part * V;
  const bool inside = first_row + row < a.rows && k < left;
  const u64 from = a.from + (u64)(first_row + row + (first + k) * a.k.step) * (NARROW ? 2 : 4);
  Words16 x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    x[i] = {{0, 0, 0, 0}};
    if (inside) x[i] = *AT(const Words16, from + (u64)(i * a.k.step) * (NARROW ? 2 : 4));
  }
  const QuantizedRow origin = quantized_row(a, 0);
#pragma unroll
  for (int v = 0; v < V; ++v) {
    u32 largest = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) largest = larger_magnitude(largest, number_of<NARROW>(x[i], v));
#pragma unroll
    for (int d = 8; d <= 16; d *= 2) {
      const u32 other = SHUFFLE_XOR32(largest, d);
      largest = other > largest ? other : largest;
    }
    if (lane < 8) most[THREAD / 32 * ROWS + row + v] = largest;
  }
  BARRIER();
  if (THREAD < ROWS) {
    u32 largest = 0;
#pragma unroll
    for (int w = 0; w < 8; ++w) largest = most[w * ROWS + THREAD] > largest ? most[w * ROWS + THREAD] : largest;
    const Cut cut = cut_of(largest);
    ups[THREAD] = cut.up;
    if (first_row + THREAD < a.rows) AT(float, a.scales)[(first_row + THREAD) * a.blocks + block] = cut.scale;
  }
  BARRIER();
  const u64 number = origin.draw + (u64)((first_row + row) * a.row_draw.step + (first + k) * a.k_draw.step);
#pragma unroll
  for (int r = 0; r < V; r += 4) {
    u32 words[4][2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      u32 q[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float t[4];
#pragma unroll
        for (int v = 0; v < 4; ++v) t[v] = number_of<NARROW>(x[h * 4 + i], r + v) * ups[row + r + v];
        round_four(a, origin.dither, number + (u64)(r + (h * 4 + i) * a.k_draw.step), t, q[i]);
      }
#pragma unroll
      for (int v = 0; v < 4; ++v)
        words[v][h] = ups[row + r + v] == 0.0f ? 0 : BYTES4(q[0][v], q[1][v], q[2][v], q[3][v]);
    }
#pragma unroll
    for (int v = 0; v < 4; ++v)
      AT(Words8, &turned[(row + r + v) * 16 + (k / 16 ^ part)])[k / 8 % 2] = {{words[v][0], words[v][1]}};
  }
  BARRIER();
#pragma unroll
  for (int i = THREAD; i < ROWS * 16; i += 256) {
    const int of = i / 16, u = i % 16;
    if (first_row + of < a.rows && u * 16 < left)
      *AT(Words16, a.q + (u64)((first_row + of) * a.size + first + u * 16)) = turned[of * 16 + (u ^ of / V)];
  }
}
BLOCK_KERNEL(quantize_turned_f32, QuantizeArgs) { quantize_turned<false>(a); }
BLOCK_KERNEL(quantize_turned_bf16, QuantizeArgs) { quantize_turned<true>(a); }
