#include "integers/blocks.cuh"
// Products of integers with matrices that rows choose (N20).

// One thread an output.
KERNEL(expert_dot_int8, ExpertDotInt8Args) {
  const i64 t = global_thread();
  if (t >= a.m * a.n) return;
  const i64 i = t / a.n, j = t % a.n;
  const i64 e = AT(const i32, a.expert)[offset_in(a.expert_axes, i)] - integer_of(a.origin);
  float c = 0;
  if (e >= 0 && e < a.experts) c = integer_dot(a, AT(const i64, a.a_row)[i], AT(const i64, a.b_row)[j] + e * a.b_step, false, 0.0f);
  store_float(a.to, a.to_type, t, c);
}

// One thread an expert, and one for the end: the rows of each in their order, behind those of the experts before.
KERNEL(sort_experts, ExpertOuterInt8Args) {
  const i64 mine = global_thread();
  if (mine > a.experts) return;
  const i64 origin = integer_of(a.origin);
  i64 next = 0;
  for (i64 r = 0; r < a.rows; ++r) {
    const i64 e = AT(const i32, a.expert)[AT(const i64, a.expert_row)[r]] - origin;
    if (e >= 0 && e < mine) ++next;
  }
  AT(i64, a.begins)[mine] = next;
  if (mine == a.experts) return;
  for (i64 r = 0; r < a.rows; ++r)
    if (AT(const i32, a.expert)[AT(const i64, a.expert_row)[r]] - origin == mine) AT(i64, a.order)[next++] = r;
}

// One thread a column of one expert, of the left operand (to nearest) or the right one (dithered).
DEVICE void cut_column(const ExpertOuterInt8Args& a, bool right, i64 column, i64 e) {
  const u64 from = right ? a.b : a.a, rows = right ? a.b_row : a.a_row;
  const i64 type = right ? a.b_type : a.a_type;
  const i64 at = AT(const i64, right ? a.b_col : a.a_col)[column];
  i8* const q = AT(i8, right ? a.b_q : a.a_q) + column * a.rows;
  const i64 begin = AT(const i64, a.begins)[e], end = AT(const i64, a.begins)[e + 1];
  float* scale = AT(float, right ? a.b_scales : a.a_scales) + column * a.blocks + begin / a.block + e;
  Dither dither = dither_of(AT(const u32, a.key)[0], AT(const u32, a.key)[a.key_step]);
  u64 draw = (u64)AT(const i64, a.draw_col)[right ? column : 0];
  for (i64 i = 0; i < a.rank; ++i) draw += (u64)(integer_of(a.b_origin[i]) * a.b_origin_stride[i]);
  for (i64 first = begin; first < end; first += a.block) {
    const i64 last = first + a.block < end ? first + a.block : end;
    u32 largest = 0;
    for (i64 k = first; k < last; ++k)
      largest = larger_magnitude(largest, load_float(from, type, at + AT(const i64, rows)[AT(const i64, a.order)[k]]));
    const Cut cut = cut_of(largest);
    *scale++ = cut.scale;
    for (i64 k = first; k < last; ++k) {
      const i64 row = AT(const i64, a.order)[k];
      const float t = load_float(from, type, at + AT(const i64, rows)[row]) * cut.up;
      if (cut.up == 0.0f)
        q[k] = 0;
      else if (!right)
        q[k] = (i8)nearest_integer(t);
      else
        q[k] = (i8)dithered_integer(t, dither_bits(dither, draw + (u64)AT(const i64, a.draw_row)[row]));
    }
  }
}
KERNEL(cut_left, ExpertOuterInt8Args) {
  const i64 t = global_thread();
  if (t < a.m * a.experts) cut_column(a, false, t / a.experts, t % a.experts);
}
KERNEL(cut_right, ExpertOuterInt8Args) {
  const i64 t = global_thread();
  if (t < a.n * a.experts) cut_column(a, true, t / a.experts, t % a.experts);
}

// One thread an output.
KERNEL(expert_outer_int8, ExpertOuterInt8Args) {
  const i64 t = global_thread();
  if (t >= a.experts * a.m * a.n) return;
  const i64 j = t % a.n, i = t / a.n % a.m, e = t / a.n / a.m;
  const i8 *x = AT(const i8, a.a_q) + i * a.rows, *y = AT(const i8, a.b_q) + j * a.rows;
  const i64 end = AT(const i64, a.begins)[e + 1];
  i64 k = AT(const i64, a.begins)[e], g = k / a.block + e;
  float c = 0;
  while (k < end) {
    const i64 last = k + a.block < end ? k + a.block : end;
    i32 sum = 0;
    for (; k < last; ++k) sum += (i32)x[k] * (i32)y[k];
    c = add_block(c, sum, AT(const float, a.a_scales)[i * a.blocks + g], AT(const float, a.b_scales)[j * a.blocks + g]);
    ++g;
  }
  AT(float, a.to)[t] = c;
}
