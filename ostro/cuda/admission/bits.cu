#include "admission/mixed.cuh"
// The elementary arithmetic of the numerics, case by case, for comparison with the host (admission.cc has the same operands).

// Two operands of case c whose product (near 1) or quotient (near 2) is within some exponents of 2^-126, or any two (near 0).
DEVICE void draw_operands(u32 c, int near, u32* x, u32* y, u32* z) {
  const u32 a = mixed(3 * c), b = mixed(3 * c + 1), d = mixed(3 * c + 2);
  *x = a, *y = b, *z = d;
  if (near == 0) return;
  const i32 wanted = (i32)(d >> 8 & 7) - 4, e = (i32)(a >> 23 & 127) + 1;  // a's exponent field: 1 to 128
  i32 other = near == 1 ? 128 + wanted - e : e + 126 + wanted;
  other = other < 0 ? 0 : other > 254 ? 254 : other;
  const u32 x_bits = d & 16 ? 0x7fffffu : d & 32 ? 0u : a & 0x7fffffu, y_bits = d & 64 ? 0x7fffffu : b & 0x7fffffu;
  *x = (a & 0x80000000u) | (u32)e << 23 | x_bits;
  *y = (b & 0x80000000u) | (u32)other << 23 | y_bits;
  *z = (d & 0x80000000u) | (d >> 16 & 3) << 23 | (mixed(d) & 0x7fffffu);
}

KERNEL(compare_bits, BitsArgs) {
  const i64 i = global_thread();
  if (i >= a.count) return;
  const u32 c = (u32)(a.first + (u64)i * a.step);
  u32 xb, yb, zb;
  draw_operands(c, c % 4 < 2 ? 0 : a.op == BITS_DIV ? 2 : 1, &xb, &yb, &zb);
  const float x = f32_of(xb), y = f32_of(yb), z = f32_of(zb), u = f32_of(c);
  float r = 0;
  if (a.op == BITS_ADD) r = x + z;
  if (a.op == BITS_MUL) r = x * y;
  if (a.op == BITS_DIV) r = x / y;
  if (a.op == BITS_FMA) r = FMA32(x, y, z);
  if (a.op == BITS_SQRT) r = SQRT32(u);
  if (a.op == BITS_BF16) r = round_bf16(u);
  if (a.op == BITS_EXP) r = exp32(u);
  if (a.op == BITS_LOG) r = log32(u);
  if (a.op == BITS_SIGMOID) r = sigmoid32(u);
  if (a.op == BITS_TANH) r = tanh32(u);
  if (a.op == BITS_E) r = exp2_block(x, y, f32_of((zb & 0x03ffffffu) | 0x3c000000u));
  AT(u32, a.to)[i] = bits32(r);
}

// N4's sum of the 64 values of each block, through shared memory and shuffles.
BLOCK_KERNEL(sum_stripes, BitsArgs) {
  u32 x, y, z;
  draw_operands((u32)(a.first + (u64)(BLOCK_X * 64 + THREAD) * a.step), 1, &x, &y, &z);
  const float sum = row_sum32(f32_of((x & 0x80ffffffu) | 0x3e000000u));
  if (THREAD == 0) AT(u32, a.to)[BLOCK_X] = bits32(sum);
}

// Four integers of 8 bits: word w of row i of an operand of product c, or words of extremes alone.
DEVICE u32 integers_at(u32 c, u32 side, u32 i, u32 w) {
  const u32 x = mixed((c * 2 + side) * 128 + i * 8 + w);
  return x % 4 == 0 ? (x & 16 ? 0x7f7f7f7fu : 0x81818181u) : x;
}

// Sums of products of 8 bits, by both instructions (N20): one warp a product. They begin with 2^20, so that none is negative and
// has the bits of a NaN.
BLOCK_KERNEL(sum_integers, BitsArgs) {
  const u32 c = (u32)(a.first + (u64)BLOCK_X * a.step), i = THREAD / 4, t = THREAD % 4;
  const u32 left[4] = {integers_at(c, 0, i, t), integers_at(c, 0, i + 8, t), integers_at(c, 0, i, t + 4),
                       integers_at(c, 0, i + 8, t + 4)};
  const u32 right[2] = {integers_at(c, 1, i, t), integers_at(c, 1, i, t + 4)};
  i32 sum[4];
  for (u32 r = 0; r < 4; ++r) sum[r] = DOT4_S8(integers_at(c, 0, i + r / 2 * 8, 0), integers_at(c, 1, t * 2 + r % 2, 7), 1 << 20);
  MMA_S8(sum, left, right);
  for (u32 r = 0; r < 4; ++r) AT(u32, a.to)[BLOCK_X * 128 + (i + r / 2 * 8) * 8 + t * 2 + r % 2] = (u32)sum[r];
}
