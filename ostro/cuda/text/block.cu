// What kernels have in common: index spaces, elements of any dtype, sums over the threads of a block, chains of products.

#define AT(T, address) ((T*)(address))

// The number of this thread among all threads of all blocks.
DEVICE i64 global_thread() { return BLOCK_X * THREADS + THREAD; }

DEVICE i64 offset_in(const Axes& axes, i64 i) {
  i64 at = 0;
  for (i64 k = axes.rank - 1; k >= 0; --k) {
    at += i % axes.size[k] * axes.stride[k];
    i /= axes.size[k];
  }
  return at;
}

DEVICE i64 integer_of(const Scalar& s) {
  if (s.at == 0) return 0;
  return s.type == TYPE_I32 ? (i64)*AT(const i32, s.at) : s.type == TYPE_U32 ? (i64)*AT(const u32, s.at) : *AT(const i64, s.at);
}

DEVICE float load_float(u64 from, i64 type, i64 at) {
  return type == TYPE_BF16 ? ld_bf16(AT(const u16, from)[at]) : AT(const float, from)[at];
}
DEVICE void store_float(u64 to, i64 type, i64 at, float x) {
  if (type == TYPE_BF16)
    AT(u16, to)[at] = st_bf16(round_bf16(x));
  else
    AT(float, to)[at] = x;
}

// What one access of 16 bytes moves: 8 numbers of bf16, 4 of f32, 16 of i8.
struct alignas(16) Words16 {
  u32 w[4];
};
struct alignas(16) Floats4 {
  float x[4];
};
// Number i of those of f32, or of bf16 (NARROW), as f32.
template <bool NARROW>
DEVICE float number_of(const Words16& x, int i) {
  if (!NARROW) return f32_of(x.w[i % 4]);
  return f32_of(i % 2 == 0 ? x.w[i / 2] << 16 : x.w[i / 2] & 0xffff0000u);
}

// Element number `at` of an array of that dtype, in the type in which it is computed: float for f32 and bf16.
template <typename T>
struct Element {
  DEVICE T load(u64 from, i64 type, i64 at) { return AT(const T, from)[at]; }
  DEVICE void store(u64 to, i64 type, i64 at, T x) { AT(T, to)[at] = x; }
};
template <>
struct Element<float> {
  DEVICE float load(u64 from, i64 type, i64 at) { return load_float(from, type, at); }
  DEVICE void store(u64 to, i64 type, i64 at, float x) { store_float(to, type, at, x); }
};

// F<T>::run(with...), T being the type in which elements of that dtype are computed. (NVRTC takes a lambda whose
// parameter is `auto` for a host's function.)
template <template <typename> class F, typename... Args>
DEVICE void with_type(i64 type, const Args&... with) {
  if (type == TYPE_F32 || type == TYPE_BF16)
    F<float>::run(with...);
  else if (type == TYPE_F64)
    F<double>::run(with...);
  else if (type == TYPE_I64)
    F<i64>::run(with...);
  else if (type == TYPE_I32)
    F<i32>::run(with...);
  else if (type == TYPE_U32)
    F<u32>::run(with...);
  else if (type == TYPE_I8)
    F<i8>::run(with...);
  else
    F<u8>::run(with...);
}

// The largest |x| so far, by its bits, which a NaN has above all numbers; and the largest that a warp's threads give.
DEVICE u32 larger_magnitude(u32 largest, float x) {
  const u32 magnitude = bits32(x) & 0x7fffffffu;
  return magnitude > largest ? magnitude : largest;
}
DEVICE u32 largest_of_warp(u32 x) {
#pragma unroll
  for (int d = 16; d >= 1; d /= 2) {
    const u32 other = SHUFFLE_XOR32(x, d);
    x = other > x ? other : x;
  }
  return x;
}

// The order of N10: numbers by value, NaN above all of them.
template <typename T>
DEVICE bool is_below(T x, T y) {
  const bool x_nan = x != x, y_nan = y != y;
  return x_nan || y_nan ? y_nan && !x_nan : x < y;
}

DEVICE float larger(float x, float y) { return max32(x, y); }
DEVICE double larger(double x, double y) { return max64(x, y); }
template <typename T>
DEVICE T larger(T x, T y) {
  return x < y ? y : x;
}

// N4: the sum over the 64 lanes of a block of 64 threads; every thread gets it.
DEVICE float from_thread_behind(float x, int d) { return f32_of(SHUFFLE_DOWN32(bits32(x), d)); }
DEVICE double from_thread_behind(double x, int d) { return f64_of(SHUFFLE_DOWN64(bits64(x), d)); }
template <typename T>
DEVICE T row_sum(T x) {
  SHARED(T, stripes, 64);
  stripes[THREAD] = x;
  BARRIER();
  T v = 0;
  if (THREAD < 32) {
    const int i = THREAD & 15;
    v = (stripes[i] + stripes[16 + i]) + (stripes[32 + i] + stripes[48 + i]);
    for (int d = 8; d >= 1; d /= 2) v = v + from_thread_behind(v, d);
  }
  BARRIER();
  if (THREAD == 0) stripes[0] = v;
  BARRIER();
  const T sum = stripes[0];
  BARRIER();
  return sum;
}
DEVICE float row_sum32(float x) { return row_sum(x); }
DEVICE double row_sum64(double x) { return row_sum(x); }

// The largest or the smallest of 64 lanes, whichever of two `pick` gives.
template <typename T, typename Pick>
DEVICE T row_pick(T x, const Pick& pick) {
  SHARED(T, lanes, 64);
  lanes[THREAD] = x;
  BARRIER();
  T y = lanes[0];
  for (int i = 1; i < 64; ++i) y = pick(y, lanes[i]);
  BARRIER();
  return y;
}
DEVICE float row_max32(float x) { return row_pick(x, [](float y, float z) { return max32(y, z); }); }
DEVICE float row_min32(float x) { return row_pick(x, [](float y, float z) { return min32(y, z); }); }
DEVICE double row_max64(double x) { return row_pick(x, [](double y, double z) { return max64(y, z); }); }
DEVICE double row_min64(double x) { return row_pick(x, [](double y, double z) { return min64(y, z); }); }

// N8: the tree over nested leaves, in place; counts are outermost first.
template <typename T>
DEVICE T join_leaves(T* p, i64 n, i64 levels, const i64* counts) {
  for (i64 level = levels - 1; level >= 0; --level) {
    const i64 c = counts[level];
    for (i64 group = 0; group < n / c; ++group) {
      T* q = p + group * c;
      for (i64 step = 1; step < c; step *= 2)
        for (i64 i = 0; i + step < c; i += 2 * step) q[i] = q[i] + q[i + step];
      p[group] = q[0];
    }
    n /= c;
  }
  return p[0];
}

// N8: the tree over part(0) to part(count - 1), +0 over none, by a binary counter: the two newest complete subtrees of equal size
// are joined; the rest at the end, from the right.
template <typename T, typename Part>
DEVICE T tree_of(i64 count, const Part& part) {
  T open[64];
  int top = 0;
  for (i64 i = 0; i < count; ++i) {
    open[top++] = part(i);
    for (i64 done = i + 1; done % 2 == 0; done /= 2) {
      --top;
      open[top - 1] = open[top - 1] + open[top];
    }
  }
  for (; top > 1; --top) open[top - 2] = open[top - 2] + open[top - 1];
  return top == 0 ? (T)0 : open[0];
}

// A chain of products: N6, or N7 when `narrow`.
struct Chain {
  float c, even, odd;
  int n;
};
DEVICE void chain_add(Chain& x, bool narrow, float a, float b) {
  if (!narrow) {
    x.c = FMA32(a, b, x.c);
    return;
  }
  if (x.n % 2 == 0)
    x.even = FMA32(a, b, x.even);
  else
    x.odd = FMA32(a, b, x.odd);
  if (++x.n < 32) return;
  x.c = x.c + (x.even + x.odd);
  x.even = 0, x.odd = 0, x.n = 0;
}
// Padded products take part: they make +0 of a -0.
DEVICE float chain_end(Chain& x, bool narrow) {
  if (!narrow || x.n == 0) return x.c;
  if (x.n < 31) x.even = FMA32(0.0f, 0.0f, x.even);
  x.odd = FMA32(0.0f, 0.0f, x.odd);
  x.c = x.c + (x.even + x.odd);
  x.even = 0, x.odd = 0, x.n = 0;
  return x.c;
}

// 2^f of E (N9), f from -1/2 to 1/2.
DEVICE float exp2_fraction(float f) {
  float p = 0x1.5bd97cp-10f;
  p = FMA32(p, f, 0x1.3ce8b2p-7f);
  p = FMA32(p, f, 0x1.c6b6dap-5f);
  p = FMA32(p, f, 0x1.ebf9c2p-3f);
  p = FMA32(p, f, 0x1.62e42ap-1f);
  p = FMA32(p, f, 1.0f);
  return p;
}

// E of N9: 2^((x - y) * kappa).
DEVICE float exp2_block(float x, float y, float kappa) {
  const float t = (x - y) * kappa;
  float bounded = t < -126.0f ? -126.0f : t;
  bounded = bounded > 128.0f ? 128.0f : bounded;
  const float shifted = bounded + 0x1.8p23f, n = shifted - 0x1.8p23f, f = bounded - n;
  float y2 = scale32(exp2_fraction(f), (i32)(bits32(shifted) - 0x4b400000u));
  y2 = t < -126.0f ? 0.0f : y2;
  return t >= 128.0f ? f32_of(0x7f800000u) : y2;
}
