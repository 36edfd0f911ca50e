// Values from indices and keys (N12): one thread an element.

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
