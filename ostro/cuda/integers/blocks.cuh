// What the kernels of integer products (N20) have in common: a block of numbers becomes integers with a scale, and the products of
// a block go into the chain of an output.

struct alignas(8) Words8 {
  u32 w[2];
};

// c after a block whose products have this sum.
DEVICE float add_block(float c, i32 sum, float a_scale, float b_scale) { return FMA32((float)sum * b_scale, a_scale, c); }

// The chain over the blocks of two rows, from c on. `words`: these have whole words, by which their numbers are added.
template <typename Args>
DEVICE float integer_dot(const Args& a, i64 x_row, i64 y_row, bool words, float c) {
  const i8 *x = AT(const i8, a.a) + x_row * a.size, *y = AT(const i8, a.b) + y_row * a.size;
  for (i64 block = 0, k = 0; block < a.blocks; ++block) {
    const i64 end = k + a.block < a.size ? k + a.block : a.size;
    i32 sum = 0;
    if (words)
      for (; k < end; k += 4) sum = DOT4_S8(*AT(const u32, x + k), *AT(const u32, y + k), sum);
    for (; k < end; ++k) sum += (i32)x[k] * (i32)y[k];
    c = add_block(c, sum, AT(const float, a.a_scales)[x_row * a.blocks + block], AT(const float, a.b_scales)[y_row * a.blocks + block]);
  }
  return c;
}

// What lies at a thread's outputs of a warp's 64 x 32, the first of which is (m, n): where products of MMA_S8 leave them.
DEVICE void load_outputs(const DotInt8Args& a, i64 m, i64 n, float (&c)[4][4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const i64 row = m + 16 * i + r / 2 * 8, column = n + 8 * j + r % 2;
        if (row < a.m && column < a.n) c[i][j][r] = AT(const float, a.to)[row * a.n + column];
      }
}

// Stores outputs n and n + 1 of row m.
DEVICE void store_two(const DotInt8Args& a, i64 m, i64 n, float x, float y) {
  if (m >= a.m || n >= a.n) return;
  if (a.n % 2 != 0) {
    store_float(a.to, a.to_type, m * a.n + n, x);
    if (n + 1 < a.n) store_float(a.to, a.to_type, m * a.n + n + 1, y);
  } else if (a.to_type == TYPE_BF16) {
    AT(u32, a.to)[(m * a.n + n) / 2] = bits32(round_bf16(x)) >> 16 | (bits32(round_bf16(y)) & 0xffff0000u);
  } else {
    AT(Words8, a.to)[(m * a.n + n) / 2] = {{bits32(x), bits32(y)}};
  }
}

DEVICE i64 line_at(const Line& line, i64 i) { return line.table == 0 ? i * line.step : AT(const i64, line.table)[i]; }

// The scale of a block, a power of two, and what its numbers are multiplied with; 0: all integers are 0.
struct Cut {
  float scale, up;
};

// `largest`: the bits of the largest |x|.
DEVICE Cut cut_of(u32 largest) {
  if (largest >= 0x7f800000u) return {f32_of(0x7fc00000u), 0.0f};
  if (largest < 0x00800000u) return {0.0f, 0.0f};
  i32 e = (i32)(largest >> 23) - 127;
  if (e < -120)
    e = -120;
  else if ((largest & 0x007fffffu) > 0x007e0000u)  // more than 127 / 64
    ++e;
  return {f32_of((u32)(e - 6 + 127) << 23), f32_of((u32)(6 - e + 127) << 23)};
}
// The integer of a number, which is t after multiplication with Cut::up: to nearest with ties to even, or dithered.
DEVICE i32 nearest_integer(float t) { return (i32)(bits32(t + 0x1.8p23f) - 0x4b400000u); }
DEVICE i32 dithered_integer(float t, u32 draw) { return (i32)FLOOR32(t + (float)(2 * draw + 1) * 0x1p-17f); }

// What a thread knows of a row.
struct QuantizedRow {
  i64 from;
  u64 draw;
  Dither dither;
};
DEVICE QuantizedRow quantized_row(const QuantizeArgs& a, i64 row) {
  QuantizedRow r = {line_at(a.row, row), 0, dither_of(0, 0)};
  if (a.key == 0) return r;
  r.draw = (u64)line_at(a.row_draw, row);
  for (i64 i = 0; i < a.rank; ++i) r.draw += (u64)(integer_of(a.origin[i]) * a.origin_stride[i]);
  r.dither = dither_of(AT(const u32, a.key)[0], AT(const u32, a.key)[a.key_step]);
  return r;
}
