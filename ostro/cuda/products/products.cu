// Products (N6, N7, cut by N8): one thread an output, whose chain over k it keeps to itself.

DEVICE float operand_b(const DotArgs& a, bool narrow, i64 at, i64 scale) {
  if (a.b_type != TYPE_I8) return load_float(a.b, a.b_type, at);
  const float x = (float)AT(const i8, a.b)[at] * load_float(a.scales, a.scale_type, scale);
  return narrow ? round_bf16(x) : x;
}

// The output whose operands begin at these offsets. `first`: what a chain of one leaf continues from.
DEVICE float dot_of(const DotArgs& a, i64 a_at, i64 b_at, i64 s_at, float first) {
  const bool narrow = a.a_type == TYPE_BF16;
  const i64 *a_col = AT(const i64, a.a_col), *b_row = AT(const i64, a.b_row), *s_row = AT(const i64, a.s_row);
  float leaf[MOST_LEAVES];
  i64 k = 0;
  for (i64 s = 0; s < a.segments; ++s) {
    const i64 end = AT(const i64, a.segment_ends)[s];
    Chain x = {first, 0, 0, 0};
    for (; k < end; ++k)
      chain_add(x, narrow, load_float(a.a, a.a_type, a_at + a_col[k]),
                operand_b(a, narrow, b_at + b_row[k], a.b_type == TYPE_I8 ? s_at + s_row[k] : 0));
    leaf[s] = chain_end(x, narrow);
  }
  return a.segments == 1 ? leaf[0] : join_leaves(leaf, a.segments, a.levels, a.counts);
}

KERNEL(dot, DotArgs) {
  const i64 t = global_thread();
  if (t >= a.batches * a.m * a.n) return;
  const i64 j = t % a.n, i = t / a.n % a.m;
  const i64* const batch = AT(const i64, a.batch) + t / a.n / a.m * 3;
  const i64 to = batch[2] + AT(const i64, a.c_row)[i] + AT(const i64, a.c_col)[j];
  const float first = a.goes_on ? AT(const float, a.c)[to] : 0.0f;
  const float y = dot_of(a, batch[0] + AT(const i64, a.a_row)[i], batch[1] + AT(const i64, a.b_col)[j],
                         a.b_type == TYPE_I8 ? AT(const i64, a.s_col)[j] : 0, first);
  store_float(a.c, a.c_type, to, y);
}

KERNEL(expert_dot, ExpertDotArgs) {
  const i64 t = global_thread();
  if (t >= a.dot.m * a.dot.n) return;
  const i64 j = t % a.dot.n, i = t / a.dot.n;
  const i64 e = AT(const i32, a.expert)[offset_in(a.expert_axes, i)] - integer_of(a.origin);
  float y = 0;
  if (e >= 0 && e < a.experts)
    y = dot_of(a.dot, AT(const i64, a.dot.a_row)[i], AT(const i64, a.dot.b_col)[j] + e * a.expert_stride,
               a.dot.b_type == TYPE_I8 ? AT(const i64, a.dot.s_col)[j] + e * a.scale_stride : 0, 0.0f);
  store_float(a.dot.c, a.dot.c_type, t, y);
}

// The rows of an expert make its chain, in their order; groups of N7 begin anew with each expert and leaf.
KERNEL(expert_outer, ExpertOuterArgs) {
  const i64 t = global_thread();
  if (t >= a.experts * a.m * a.n) return;
  const i64 j = t % a.n, i = t / a.n % a.m, e = t / a.n / a.m + integer_of(a.origin);
  const bool narrow = a.type == TYPE_BF16;
  const i64 a_at = AT(const i64, a.a_row)[i], b_at = AT(const i64, a.b_col)[j];
  float leaf[MOST_LEAVES];
  i64 r = 0;
  for (i64 s = 0; s < a.segments; ++s) {
    Chain x = {0, 0, 0, 0};
    for (; r < AT(const i64, a.segment_ends)[s]; ++r)
      if (AT(const i32, a.expert)[AT(const i64, a.expert_row)[r]] == e)
        chain_add(x, narrow, load_float(a.a, a.type, a_at + AT(const i64, a.a_col)[r]),
                  load_float(a.b, a.type, b_at + AT(const i64, a.b_row)[r]));
    leaf[s] = chain_end(x, narrow);
  }
  store_float(a.to, a.to_type, t, a.segments == 1 ? leaf[0] : join_leaves(leaf, a.segments, a.levels, a.counts));
}
