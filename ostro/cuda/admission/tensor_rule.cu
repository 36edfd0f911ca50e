#include "admission/mixed.cuh"
#include "products/tensor_rule.cuh"
// Single steps by the rule of tensor cores (N23), for comparison with the host (tensor_rule.cc has the same operands).

// Number k of row i of an operand of product c, bf16: ordinary ones, of wide exponents, tiny and denormal, or any bits.
DEVICE u32 tensor_operand(u32 c, u32 side, u32 i, u32 k) {
  const u32 x = mixed((c * 2 + side) * 256 + i * 16 + k), kind = c % 4;
  if (x >> 28 == 0) return x & 0x8000u;
  if (kind == 3) return x >> 29 == 1 ? x & 0xffffu : x & 0xbfffu;
  const u32 low = kind == 0 ? 122 : kind == 1 ? 97 : 46, span = kind == 0 ? 8 : kind == 1 ? 61 : 24;
  return (x & 0x807fu) | (kind == 2 && x >> 28 == 1 ? 0 : low + (x >> 16 & 0xff) % span) << 7;
}
// What output `at` of product c begins with.
DEVICE u32 tensor_start(u32 c, u32 at) {
  const u32 x = mixed(c * 128 + at + 0x5eed5eedu), kind = c % 4;
  if (x % 4 == 0) return 0;
  const u32 low = kind == 0 ? 118 : kind == 1 ? 67 : 0, span = kind == 0 ? 16 : kind == 1 ? 120 : 8;
  return kind == 3 ? x : (x & 0x807fffffu) | (low + (x >> 8 & 0xff) % span) << 23;
}

// One warp a product of 16 x 8 outputs and 16 numbers each.
BLOCK_KERNEL(tensor_steps, BitsArgs) {
  const u32 c = (u32)(a.first + (u64)BLOCK_X * a.step), i = THREAD / 4, t = THREAD % 4;
  u32 left[4], right[2];
  for (u32 r = 0; r < 4; ++r) {
    const u32 k = (t + r / 2 * 4) * 2, row = i + r % 2 * 8;
    left[r] = tensor_operand(c, 0, row, k) | tensor_operand(c, 0, row, k + 1) << 16;
  }
  for (u32 r = 0; r < 2; ++r) {
    const u32 k = (t + r * 4) * 2;
    right[r] = tensor_operand(c, 1, i, k) | tensor_operand(c, 1, i, k + 1) << 16;
  }
  float sum[4];
  for (u32 r = 0; r < 4; ++r) sum[r] = f32_of(tensor_start(c, (i + r / 2 * 8) * 8 + t * 2 + r % 2));
  mma_tensor_rule(sum, left, right);
  for (u32 r = 0; r < 4; ++r) AT(u32, a.to)[BLOCK_X * 128 + (i + r / 2 * 8) * 8 + t * 2 + r % 2] = bits32(sum[r]);
}
