// Values from indices and keys (N12): one thread an element.

struct Words {
  u32 x0, x1;
};

DEVICE void threefry_round(Words& x, int rotation) {
  x.x0 += x.x1;
  x.x1 = (x.x1 << rotation) | (x.x1 >> (32 - rotation));
  x.x1 ^= x.x0;
}
DEVICE void threefry_group(Words& x, int r0, int r1, int r2, int r3, u32 add0, u32 add1) {
  threefry_round(x, r0), threefry_round(x, r1), threefry_round(x, r2), threefry_round(x, r3);
  x.x0 += add0, x.x1 += add1;
}
DEVICE Words threefry(u32 k0, u32 k1, u32 x0, u32 x1) {
  const u32 k2 = k0 ^ k1 ^ 0x1bd11bdau;
  Words x = {x0 + k0, x1 + k1};
  threefry_group(x, 13, 15, 26, 6, k1, k2 + 1);
  threefry_group(x, 17, 29, 16, 24, k2, k0 + 2);
  threefry_group(x, 13, 15, 26, 6, k0, k1 + 3);
  threefry_group(x, 17, 29, 16, 24, k1, k2 + 4);
  threefry_group(x, 13, 15, 26, 6, k2, k0 + 5);
  return x;
}

DEVICE float normal_of(float u) { return (float)(0x1.6a09e667f3bcdp+0 * erfinv64((double)u)); }

KERNEL(iota, IotaArgs) {
  const i64 i = global_thread();
  if (i < a.count) AT(i32, a.to)[i] = (i32)(integer_of(a.origin) + i);
}

KERNEL(fold_in, FoldInArgs) {
  if (global_thread() != 0) return;
  const Words x = threefry(AT(const u32, a.key)[0], AT(const u32, a.key)[1], 0, (u32)integer_of(a.data));
  AT(u32, a.to)[0] = x.x0;
  AT(u32, a.to)[1] = x.x1;
}

KERNEL(draw_random, RandomArgs) {
  const i64 i = global_thread();
  if (i >= a.count) return;
  u64 index = (u64)offset_in(a.axes, i);
  for (i64 k = 0; k < a.axes.rank; ++k) index += (u64)(integer_of(a.origin[k]) * a.axes.stride[k]);
  const Words x = threefry(AT(const u32, a.key)[0], AT(const u32, a.key)[1], (u32)(index >> 32), (u32)index);
  const u32 bits = x.x0 ^ x.x1;
  const float f = f32_of((bits >> 9) | 0x3f800000u) - 1.0f, low = -0x1.fffffep-1f, most = 0x1.fe9e22p-1f;
  if (a.draw == DRAW_BITS)
    AT(u32, a.to)[i] = bits;
  else if (a.draw == DRAW_UNIFORM)
    AT(float, a.to)[i] = f;
  else if (a.draw == DRAW_NORMAL)
    AT(float, a.to)[i] = normal_of(max32(low, f * 2.0f + low));
  else
    AT(float, a.to)[i] = min32(max32(normal_of(max32(-most, f * (2.0f * most) + -most)), -3.0f), 3.0f);
}
