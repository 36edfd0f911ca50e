// Reductions that are no part of a generated kernel (N4, N5, cut by N8): one thread a result.

DEVICE float sum_lanes(float* lanes) { return sum_stripes32(lanes); }
DEVICE double sum_lanes(double* lanes) { return sum_stripes64(lanes); }

template <typename T, typename Sum>
DEVICE Sum sum_of(const ReduceArgs& a, i64 first) {
  Sum leaf[MOST_LEAVES];
  const i64* const at = AT(const i64, a.reduced);
  i64 begin = 0;
  for (i64 s = 0; s < a.segments; ++s) {
    const i64 end = AT(const i64, a.segment_ends)[s];
    if (a.kind == REDUCE_SUM_STRIPED) {
      Sum lanes[64];
      for (int l = 0; l < 64; ++l) lanes[l] = 0;
      for (i64 r = begin; r < end; ++r) {
        Sum& lane = lanes[(r - begin) % 64];
        lane = lane + (Sum)Element<T>::load(a.from, a.type, first + at[r]);
      }
      leaf[s] = sum_lanes(lanes);
    } else {
      Sum sum = 0;
      for (i64 r = begin; r < end; ++r) sum = sum + (Sum)Element<T>::load(a.from, a.type, first + at[r]);
      leaf[s] = sum;
    }
    begin = end;
  }
  return join_leaves(leaf, a.segments, a.levels, a.counts);
}

DEVICE float smaller(float x, float y) { return min32(x, y); }
DEVICE double smaller(double x, double y) { return min64(x, y); }
template <typename T>
DEVICE T smaller(T x, T y) {
  return y < x ? y : x;
}

template <typename T>
DEVICE T extremum_of(const ReduceArgs& a, i64 first, T of_nothing) {
  T best = of_nothing;
  for (i64 r = 0; r < a.length; ++r) {
    const T x = Element<T>::load(a.from, a.type, first + AT(const i64, a.reduced)[r]);
    best = a.kind == REDUCE_MAX ? larger(best, x) : smaller(best, x);
  }
  return best;
}

template <typename T>
DEVICE i64 argmax_of(const ReduceArgs& a, i64 first) {
  const i64* const at = AT(const i64, a.reduced);
  i64 best = 0;
  for (i64 r = 1; r < a.length; ++r)
    if (is_below(Element<T>::load(a.from, a.type, first + at[best]), Element<T>::load(a.from, a.type, first + at[r]))) best = r;
  return best;
}

template <typename T, typename U>
DEVICE T integer_sum(const ReduceArgs& a, i64 first) {
  U sum = 0;
  for (i64 r = 0; r < a.length; ++r) sum += (U)AT(const T, a.from)[first + AT(const i64, a.reduced)[r]];
  return (T)sum;
}

template <typename T, typename U>
DEVICE void reduce_integer(const ReduceArgs& a, i64 i, i64 first, T least, T most) {
  if (a.kind == REDUCE_ARGMAX)
    AT(i32, a.to)[i] = (i32)argmax_of<T>(a, first);
  else if (a.kind == REDUCE_MAX || a.kind == REDUCE_MIN)
    AT(T, a.to)[i] = extremum_of<T>(a, first, a.kind == REDUCE_MAX ? least : most);
  else
    AT(T, a.to)[i] = integer_sum<T, U>(a, first);
}

template <typename T>
DEVICE void reduce_floats(const ReduceArgs& a, i64 i, i64 first, T infinity) {
  if (a.kind == REDUCE_ARGMAX)
    AT(i32, a.to)[i] = (i32)argmax_of<T>(a, first);
  else if (a.kind == REDUCE_TREE)
    AT(T, a.to)[i] = tree_of<T>(a.length, [&](i64 r) { return AT(const T, a.from)[first + AT(const i64, a.reduced)[r]]; });
  else if (a.kind == REDUCE_MAX || a.kind == REDUCE_MIN)
    Element<T>::store(a.to, a.to_type, i, extremum_of<T>(a, first, a.kind == REDUCE_MAX ? -infinity : infinity));
  else if (sizeof(T) == 4 && a.to_type == TYPE_F64)
    AT(double, a.to)[i] = sum_of<T, double>(a, first);
  else
    AT(T, a.to)[i] = sum_of<T, T>(a, first);
}

KERNEL(reduce, ReduceArgs) {
  const i64 i = global_thread();
  if (i >= a.outputs) return;
  const i64 first = offset_in(a.kept, i);
  if (a.type == TYPE_F32 || a.type == TYPE_BF16)
    reduce_floats(a, i, first, f32_of(0x7f800000u));
  else if (a.type == TYPE_F64)
    reduce_floats(a, i, first, f64_of(0x7ff0000000000000u));
  else if (a.type == TYPE_I64)
    reduce_integer<i64, u64>(a, i, first, (i64)0x8000000000000000u, (i64)0x7fffffffffffffffu);
  else if (a.type == TYPE_I32)
    reduce_integer<i32, u32>(a, i, first, (i32)0x80000000u, 0x7fffffff);
  else if (a.type == TYPE_U32)
    reduce_integer<u32, u32>(a, i, first, 0u, 0xffffffffu);
  else if (a.type == TYPE_I8)
    reduce_integer<i8, u8>(a, i, first, (i8)-128, (i8)127);
  else
    reduce_integer<u8, u8>(a, i, first, (u8)0, (u8)255);
}
