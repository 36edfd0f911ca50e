#include "integers/blocks.cuh"
// Quantise (N20): the numbers of a row become integers in blocks, which have one scale each. Both kernels take any places in
// memory; they differ in which threads read neighbours.

DEVICE float number_at(const QuantizeArgs& a, i64 from, i64 k) { return load_float(a.from, a.type, from + line_at(a.k, k)); }

// Numbers k to k + count - 1 of a row, at most four, as bytes of a word.
DEVICE u32 quantized_word(const QuantizeArgs& a, const QuantizedRow& r, const Cut& cut, i64 k, int count) {
  u32 word = 0;
  Dither dither = r.dither;
  if (cut.up == 0.0f) return word;
  for (int i = 0; i < count; ++i) {
    const float t = number_at(a, r.from, k + i) * cut.up;
    i32 q = 0;
    if (a.key == 0) {
      q = nearest_integer(t);
    } else {
      const u32 draw = dither_bits(dither, r.draw + (u64)line_at(a.k_draw, k + i));
      q = dithered_integer(t, draw);
    }
    word |= ((u32)q & 0xffu) << (8 * i);
  }
  return word;
}
DEVICE void store_quantized(const QuantizeArgs& a, i64 row, i64 k, u32 word, int count) {
  if (a.aligned && count == 4) {
    AT(u32, a.q)[(row * a.size + k) / 4] = word;
    return;
  }
  for (int i = 0; i < count; ++i) AT(u8, a.q)[row * a.size + k + i] = (u8)(word >> (8 * i));
}

DEVICE int at_most_4(i64 left) { return left < 4 ? (int)left : 4; }

// One warp a block of a row: its threads take neighbours along k, four each.
BLOCK_KERNEL(quantize_along, QuantizeArgs) {
  const i64 row = global_thread() / 32 / a.blocks, block = global_thread() / 32 % a.blocks;
  if (row >= a.rows) return;
  const i64 first = block * a.block + THREAD % 32 * 4;
  const i64 end = (block + 1) * a.block < a.size ? (block + 1) * a.block : a.size;
  const QuantizedRow r = quantized_row(a, row);
  u32 largest = 0;
  for (i64 k = first; k < end; k += 128)
    for (int i = 0; i < at_most_4(end - k); ++i) largest = larger_magnitude(largest, number_at(a, r.from, k + i));
  const Cut cut = cut_of(largest_of_warp(largest));
  if (THREAD % 32 == 0) AT(float, a.scales)[row * a.blocks + block] = cut.scale;
  for (i64 k = first; k < end; k += 128)
    store_quantized(a, row, k, quantized_word(a, r, cut, k, at_most_4(end - k)), at_most_4(end - k));
}

// 256 threads a block of 32 rows: the threads of a warp take neighbouring rows. The integers are turned in shared memory, 128 of
// each row at a time.
BLOCK_KERNEL(quantize_across, QuantizeArgs) {
  enum { WARPS = 8, K = 128, STRIDE = K / 4 + 1 };
  SHARED(u32, most, 32 * WARPS);
  SHARED(u32, turned, 32 * STRIDE);
  const int lane = THREAD % 32, warp = THREAD / 32;
  const i64 block = BLOCK_X % a.blocks, first_row = BLOCK_X / a.blocks * 32, row = first_row + lane;
  const i64 begin = block * a.block, end = begin + a.block < a.size ? begin + a.block : a.size;
  const bool inside = row < a.rows;
  const QuantizedRow r = quantized_row(a, inside ? row : 0);
  u32 largest = 0;
  if (inside)
    for (i64 k = begin + warp; k < end; k += WARPS) largest = larger_magnitude(largest, number_at(a, r.from, k));
  most[THREAD] = largest;
  BARRIER();
  for (int w = 0; w < WARPS; ++w) largest = most[w * 32 + lane] > largest ? most[w * 32 + lane] : largest;
  const Cut cut = cut_of(largest);
  if (inside && warp == 0) AT(float, a.scales)[row * a.blocks + block] = cut.scale;
  for (i64 piece = begin; piece < end; piece += K) {
    for (int w = warp * 4; w < warp * 4 + 4; ++w)
      if (inside && piece + w * 4 < end)
        turned[lane * STRIDE + w] = quantized_word(a, r, cut, piece + w * 4, at_most_4(end - piece - w * 4));
    BARRIER();
    for (int t = THREAD; t < 32 * (K / 4); t += 32 * WARPS) {
      const i64 k = piece + t % (K / 4) * 4;
      const int of = t / (K / 4);
      if (first_row + of < a.rows && k < end)
        store_quantized(a, first_row + of, k, turned[of * STRIDE + t % (K / 4)], at_most_4(end - k));
    }
    BARRIER();
  }
}
