// Tiles of products for attention. A block of T threads makes R rows by T / (R / 8) * N columns of outputs, a thread 8 x N of
// them, each one chain. Operands lie in shared memory by the number that is summed: element (k, i) of a turned array of
// width W is at turned<W>(k, i). Quads of it are exchanged so that neither the turning nor the reading meets a bank twice.

struct alignas(8) FourNarrow {
  u16 x[4];
};

// The place of this thread: of its first row and its first column, in quads.
template <int R, int T>
struct Own {
  enum { DOWN = R / 8, ACROSS = T / DOWN };
  unsigned down, across;
  DEVICE Own here() {
    const unsigned lane = THREAD % 32u, warp = THREAD / 32u;
    return {lane / 8 + 4 * (warp % (DOWN / 4)), lane % 8 + 8 * (warp / (DOWN / 4))};
  }
  static_assert(DOWN % 4 == 0 && ACROSS % 8 == 0, "a warp takes 4 by 8 quads");
};
// The row of output i, the column of output j.
template <int R, int T>
DEVICE int own_row(const Own<R, T>& own, unsigned i) { return i / 4 * (R / 2) + own.down * 4 + i % 4; }
template <int R, int T>
DEVICE int own_column(const Own<R, T>& own, unsigned j) { return (j / 4 * Own<R, T>::ACROSS + own.across) * 4 + j % 4; }

template <int W>
DEVICE unsigned turned(unsigned k, unsigned i) { return k * W + ((i / 4) ^ (k / 4 % 8)) * 4 + i % 4; }

// Rows of `dims` numbers in device memory: row 0 begins at the address `at`, and each `step` bytes after the one before.
struct TileRows {
  u64 at;
  i64 step, type;
  int count, dims;
};
DEVICE TileRows tile_rows(const AttentionPlace& p, i64 b, i64 h, i64 count, i64 dims) {
  const i64 bytes = p.type == TYPE_BF16 ? 2 : 4;
  return {p.at + (u64)(place_of(p, b, h, 0) * bytes), p.pos * bytes, p.type, (int)count, (int)dims};
}
// Numbers d to d + 3 of row i; +0 outside, without a branch, so that a thread's loads are on their way together.
template <bool narrow>
DEVICE Floats4 load_four(const TileRows& from, int i, int d) {
  const bool inside = (unsigned)i < (unsigned)from.count && d < from.dims;
  const int row = i < 0 ? 0 : i < from.count ? i : from.count - 1;
  const u64 at = from.at + (u64)(row * from.step);
  const int quad = inside ? d / 4 : 0;
  Floats4 y;
  if (narrow) {
    const FourNarrow x = AT(const FourNarrow, at)[quad];
#pragma unroll
    for (int e = 0; e < 4; ++e) y.x[e] = ld_bf16(x.x[e]);
  } else {
    y = AT(const Floats4, at)[quad];
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) y.x[e] = inside ? y.x[e] : 0.0f;
  return y;
}
DEVICE void store_four(const TileRows& to, int i, int d, const Floats4& x) {
  if (i >= to.count || d >= to.dims) return;
  const u64 row = to.at + (u64)(i * to.step);
  if (to.type != TYPE_BF16) {
    AT(Floats4, row)[d / 4] = x;
    return;
  }
  FourNarrow y;
#pragma unroll
  for (int e = 0; e < 4; ++e) y.x[e] = st_bf16(round_bf16(x.x[e]));
  AT(FourNarrow, row)[d / 4] = y;
}

// Turns rows first to first + W - 1, numbers first_d to first_d + D - 1 of each, into `to`. Of each warp, 8 neighbours along
// head_dim have one row. All loads come before the first store, which they could not pass; before the stores the block waits for
// those who still read `to`.
template <int W, int D, int T, bool narrow>
DEVICE void turn_in(float* to, const TileRows& from, int first, int first_d) {
  enum { WARPS = T / 32, TIMES = W / 4 / WARPS, ALONG = D / 32 };
  const unsigned warp = THREAD / 32u, quad = THREAD % 32u / 4u, i = THREAD % 4u;
  Floats4 x[TIMES][ALONG];
#pragma unroll
  for (unsigned n = 0; n < TIMES; ++n)
#pragma unroll
    for (unsigned d = 0; d < ALONG; ++d)
      x[n][d] = load_four<narrow>(from, first + (int)((warp + n * WARPS) * 4 + i), first_d + (int)(d * 32 + quad * 4));
  BARRIER();
#pragma unroll
  for (unsigned n = 0; n < TIMES; ++n)
#pragma unroll
    for (unsigned d = 0; d < ALONG; ++d)
#pragma unroll
      for (unsigned e = 0; e < 4; ++e)
        to[(d * 32 + quad * 4 + e) * W + ((warp + n * WARPS) ^ quad) * 4 + i] = x[n][d].x[e];
}
// Brings in whole rows, D numbers wide, in the same way.
template <int ROWS, int D, int T, bool narrow>
DEVICE void rows_in(float* to, const TileRows& from, int first) {
  enum { STEP = T / (D / 4), TIMES = ROWS / STEP };
  const unsigned quad = THREAD % (D / 4u), row = THREAD / (D / 4u);
  Floats4 x[TIMES];
#pragma unroll
  for (unsigned n = 0; n < TIMES; ++n) x[n] = load_four<narrow>(from, first + (int)(row + n * STEP), (int)quad * 4);
  BARRIER();
#pragma unroll
  for (unsigned n = 0; n < TIMES; ++n) *(Floats4*)(to + (row + n * STEP) * D + quad * 4) = x[n];
}

template <int N>
DEVICE void clear(float (&c)[8][N]) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < N; ++j) c[i][j] = 0;
}

// Four steps of the chains; k is a multiple of 4.
template <int R, int T, int N, bool turned_b>
DEVICE void four_steps(float (&even)[8][N], float (&odd)[8][N], const Own<R, T>& own, const float* a, const float* b, int width, unsigned k) {
  const unsigned s = k / 4 % 8;
  const float* const upper = a + k * R + (own.down ^ s) * 4;
  const float* const lower = R % 64 == 0 ? upper + R / 2 : a + k * R + ((R / 8 + own.down) ^ s) * 4;
  const float* const right = b + k * width + (turned_b ? own.across ^ s : own.across) * 4;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    Floats4 x[2], y[N / 4];
    x[0] = *(const Floats4*)(upper + e * R), x[1] = *(const Floats4*)(lower + e * R);
#pragma unroll
    for (int n = 0; n < N / 4; ++n) y[n] = *(const Floats4*)(right + e * width + n * Own<R, T>::ACROSS * 4);
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < N; ++j) {
        float& c = e % 2 == 0 ? even[i][j] : odd[i][j];
        c = FMA32(x[i / 4].x[i % 4], y[j / 4].x[j % 4], c);
      }
  }
}
// Continues the chains c by `steps` products: a multiple of 4, with `narrow` of 32. a is turned, of width R.
template <int R, int T, int N, bool narrow, bool turned_b>
DEVICE void add_products(float (&c)[8][N], const Own<R, T>& own, const float* a, const float* b, int width, int steps) {
  if (!narrow) {
#pragma unroll 2
    for (int k = 0; k < steps; k += 4) four_steps<R, T, N, turned_b>(c, c, own, a, b, width, k);
    return;
  }
  for (int group = 0; group < steps; group += 32) {
    float even[8][N], odd[8][N];
    clear(even);
    clear(odd);
#pragma unroll 2
    for (int k = 0; k < 32; k += 4) four_steps<R, T, N, turned_b>(even, odd, own, a, b, width, group + k);
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < N; ++j) c[i][j] = c[i][j] + (even[i][j] + odd[i][j]);
  }
}

// Continues the chains c over head_dim: a is whole, rows `first` to first + W - 1 of `from` come by pieces of D numbers.
template <int R, int T, int N, int W, int D, bool narrow>
DEVICE void add_dots(float (&c)[8][N], const Own<R, T>& own, const float* a, float* piece, const TileRows& from, int first) {
  const int dims = narrow ? (from.dims + 31) / 32 * 32 : from.dims;
  for (int d = 0; d < dims; d += D) {
    turn_in<W, D, T, narrow>(piece, from, first, d);
    BARRIER();
    add_products<R, T, N, narrow, true>(c, own, a + d * R, piece, W, dims - d < D ? dims - d : D);
  }
}
// Continues the chains c over `STEPS` rows of `from`, which come by pieces of D rows; a is turned.
template <int R, int T, int N, int WIDE, int D, bool narrow>
DEVICE void add_rows(float (&c)[8][N], const Own<R, T>& own, const float* a, float* piece, const TileRows& from, int first, int steps) {
  for (int k = 0; k < steps; k += D) {
    rows_in<D, WIDE, T, narrow>(piece, from, first + k);
    BARRIER();
    add_products<R, T, N, narrow, false>(c, own, a + k * R, piece, WIDE, D);
  }
}

// Puts the outputs into a turned array by column.
template <int R, int T, int N>
DEVICE void put_turned(float* to, const Own<R, T>& own, const float (&c)[8][N]) {
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Floats4 x;
#pragma unroll
      for (int e = 0; e < 4; ++e) x.x[e] = c[half * 4 + e][j];
      *(Floats4*)(to + turned<R>(own_column(own, j), own_row(own, half * 4))) = x;
    }
}
// Stores the outputs, times `scale` and plus +0.
template <int R, int T, int N>
DEVICE void put_rows(const TileRows& to, int first, const Own<R, T>& own, const float (&c)[8][N], float scale) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < N; j += 4) {
      Floats4 x;
#pragma unroll
      for (int e = 0; e < 4; ++e) x.x[e] = c[i][j + e] * scale + 0.0f;
      store_four(to, first + own_row(own, i), own_column(own, j), x);
    }
}
