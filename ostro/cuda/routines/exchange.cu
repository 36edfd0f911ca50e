// Joins what several workers sent (N8): one thread an element.

template <typename T>
DEVICE T slice(const JoinArgs& a, i64 s, i64 i) {
  return s == a.place ? AT(const T, a.own)[i] : AT(const T, a.received)[(s - (s > a.place ? 1 : 0)) * a.count + i];
}

// By a binary counter: the two newest complete subtrees of equal size are joined; the rest at the end, from the right.
template <typename T>
DEVICE T tree_of(const JoinArgs& a, i64 i) {
  T open[16];
  int top = 0;
  for (i64 s = 0; s < a.slices; ++s) {
    open[top++] = slice<T>(a, s, i);
    for (i64 count = s + 1; count % 2 == 0; count /= 2) {
      --top;
      open[top - 1] = open[top - 1] + open[top];
    }
  }
  for (; top > 1; --top) open[top - 2] = open[top - 2] + open[top - 1];
  return open[0];
}

DEVICE float larger(float x, float y) { return max32(x, y); }
DEVICE double larger(double x, double y) { return max64(x, y); }
template <typename T>
DEVICE T larger(T x, T y) {
  return x < y ? y : x;
}

template <typename T>
DEVICE void max_of(const JoinArgs& a, i64 i) {
  T most = slice<T>(a, 0, i);
  for (i64 s = 1; s < a.slices; ++s) most = larger(most, slice<T>(a, s, i));
  AT(T, a.to)[i] = most;
}

// T is an integer without a sign.
template <typename T>
DEVICE void join_integers(const JoinArgs& a, i64 i) {
  T joined = 0;
  for (i64 s = 0; s < a.slices; ++s)
    joined = a.kind == JOIN_BITS ? (T)(joined | slice<T>(a, s, i)) : (T)(joined + slice<T>(a, s, i));
  AT(T, a.to)[i] = joined;
}

KERNEL(join_slices, JoinArgs) {
  const i64 i = global_thread();
  if (i >= a.count) return;
  if (a.kind == JOIN_TREE) {
    if (a.type == TYPE_F32)
      AT(float, a.to)[i] = tree_of<float>(a, i);
    else
      AT(double, a.to)[i] = tree_of<double>(a, i);
  } else if (a.kind != JOIN_MAX) {
    if (a.type == TYPE_I64)
      join_integers<u64>(a, i);
    else if (a.type == TYPE_I32 || a.type == TYPE_U32)
      join_integers<u32>(a, i);
    else
      join_integers<u8>(a, i);
  } else if (a.type == TYPE_F32) {
    max_of<float>(a, i);
  } else if (a.type == TYPE_F64) {
    max_of<double>(a, i);
  } else if (a.type == TYPE_I64) {
    max_of<i64>(a, i);
  } else if (a.type == TYPE_I32) {
    max_of<i32>(a, i);
  } else if (a.type == TYPE_U32) {
    max_of<u32>(a, i);
  } else if (a.type == TYPE_I8) {
    max_of<i8>(a, i);
  } else {
    max_of<u8>(a, i);
  }
}
