// Slices of rows (N21): the scale of a row, its integers, and sums of their products. Blocks are of 128 threads.

enum { WARPS = PIECE / 32 };

// The scale of a row, and what its numbers are multiplied with; 0: all integers are 0. `largest`: the bits of the largest |x|.
struct SliceCut {
  float scale, up;
};
DEVICE SliceCut slice_cut(u32 largest) {
  if (largest >= 0x7f800000u) return {f32_of(0x7fc00000u), 0.0f};
  if (largest < 0x00800000u) return {0.0f, 0.0f};
  u32 e = largest >> 23;
  if (e < 127 - 113) e = 127 - 113;
  if (largest > ((e << 23) | 0x007e0000u)) ++e;  // more than 127 scales
  return {f32_of((e - 6) << 23), f32_of((127 + 6 + 127 - e) << 23)};
}

struct Slices {
  i32 high, low;
};
DEVICE i32 integer_near(float t) { return (i32)(bits32(t + 0x1.8p23f) - 0x4b400000u); }
DEVICE Slices slices_of(float x, const SliceCut& cut) {
  if (cut.up == 0.0f) return {0, 0};
  const float t = x * cut.up;
  const i32 high = integer_near(t);
  return {high, integer_near((t - (float)high) * 128.0f)};
}

// The largest of what the threads of a block give; `room` has a number for each warp.
DEVICE u32 largest_of_block(u32 x, u32* room) {
  x = largest_of_warp(x);
  if (THREAD % 32 == 0) room[THREAD / 32] = x;
  BARRIER();
  for (int w = 0; w < WARPS; ++w) x = room[w] > x ? room[w] : x;
  BARRIER();
  return x;
}

// Cuts the weights of a block, one of each thread, and shares their slices; returns their scale.
DEVICE float share_slices(float w, i32* high, i32* low, u32* room) {
  const SliceCut cut = slice_cut(largest_of_block(bits32(w) & 0x7fffffffu, room));
  const Slices s = slices_of(w, cut);
  high[THREAD] = s.high;
  low[THREAD] = s.low;
  BARRIER();
  return cut.scale;
}

DEVICE float add_slices(float c, i32 high, i32 mixed, float left, float right) {
  c = FMA32((float)high * right, left, c);
  return FMA32((float)mixed * right, left * 0x1p-7f, c);
}
