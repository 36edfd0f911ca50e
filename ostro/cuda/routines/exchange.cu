// Joins what several workers sent (N8): one thread an element.

template <typename T>
DEVICE T slice(const JoinArgs& a, i64 s, i64 i) {
  return s == a.place ? AT(const T, a.own)[i] : AT(const T, a.received)[(s - (s > a.place ? 1 : 0)) * a.count + i];
}

template <typename T>
struct Max {
  DEVICE void run(const JoinArgs& a, i64 i) {
    T most = slice<T>(a, 0, i);
    for (i64 s = 1; s < a.slices; ++s) most = larger(most, slice<T>(a, s, i));
    AT(T, a.to)[i] = most;
  }
};

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
      AT(float, a.to)[i] = tree_of<float>(a.slices, [&](i64 s) { return slice<float>(a, s, i); });
    else
      AT(double, a.to)[i] = tree_of<double>(a.slices, [&](i64 s) { return slice<double>(a, s, i); });
  } else if (a.kind != JOIN_MAX) {
    if (a.type == TYPE_I64)
      join_integers<u64>(a, i);
    else if (a.type == TYPE_I32 || a.type == TYPE_U32)
      join_integers<u32>(a, i);
    else
      join_integers<u8>(a, i);
  } else {
    with_type<Max>(a.type, a, i);
  }
}
