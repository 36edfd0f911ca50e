// One output of a product in a thread.

// The output whose operands and scales begin at these offsets. `first`: what a chain of one leaf continues from.
typedef float DotOf(const DotArgs& a, i64 a_at, i64 b_at, i64 s_at, float first);

template <DotOf* dot_of>
DEVICE void dot_output(const DotArgs& a) {
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

// The same with the matrix of the row's expert.
template <DotOf* dot_of>
DEVICE void expert_dot_output(const ExpertDotArgs& a) {
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
