// Tiles of products whose operands are regular (N6, N7): from one k to the next is one step, and 16 bytes at a time lie together,
// along k or along the other axis of the operand. A thread makes 4 CM x 4 CN outputs, each with a chain of its own. They go
// through k in pieces of K, which lie in shared memory by k, widened to f32. One piece is computed with while the next one is read.
// The kernels are in files of their own, one a size of tiles: a program has few of them, and compiling takes seconds.

// What a thread carries of an operand from device memory to the tile: units of 16 bytes. Beyond its lines and beyond k is +0.
template <int LINES, int K, int STRIDE, int T, bool narrow, bool along_k>
struct Carrier {
  enum { BYTES = narrow ? 2 : 4, V = 16 / BYTES, UNITS = LINES * K / V / T };
  static_assert(UNITS * T * V == LINES * K, "every thread carries as much as the others");
  u64 at[UNITS];  // 0: no such line
  Words16 x[UNITS];

  // Of two threads along k beside each other the stores are to different banks.
  DEVICE int unit_k(int u) {
    const int i = THREAD + u * T;
    return along_k ? (i % 2 + i / (2 * LINES) * 2) * V : i / (LINES / V);
  }
  DEVICE int unit_line(int u) {
    const int i = THREAD + u * T;
    return along_k ? i / 2 % LINES : i % (LINES / V) * V;
  }
  DEVICE void begin(Carrier& c, u64 from, i64 batch, u64 lines, i64 first, i64 end, i64 step) {
#pragma unroll
    for (int u = 0; u < UNITS; ++u) {
      const i64 line = first + unit_line(u);
      c.at[u] = line < end ? from + (u64)((batch + AT(const i64, lines)[line] + unit_k(u) * step) * BYTES) : 0;
    }
  }
  // The next piece, of which `left` numbers along k are there.
  DEVICE void load(Carrier& c, int left, i64 step) {
#pragma unroll
    for (int u = 0; u < UNITS; ++u) {
      c.x[u] = {{0, 0, 0, 0}};
      if (c.at[u] == 0) continue;
      if (unit_k(u) < left) c.x[u] = *AT(const Words16, c.at[u]);
      c.at[u] += (u64)(step * (K * BYTES));
    }
  }
  DEVICE void store(const Carrier& c, float* tile) {
#pragma unroll
    for (int u = 0; u < UNITS; ++u) {
      float* const to = tile + unit_k(u) * STRIDE + unit_line(u);
      if (along_k) {
#pragma unroll
        for (int i = 0; i < V; ++i) to[i * STRIDE] = number_of<narrow>(c.x[u], i);
      } else {
#pragma unroll
        for (int i = 0; i < V; i += 4)
          *(Floats4*)(to + i) = {{number_of<narrow>(c.x[u], i), number_of<narrow>(c.x[u], i + 1), number_of<narrow>(c.x[u], i + 2),
                                  number_of<narrow>(c.x[u], i + 3)}};
      }
    }
  }
};

// The outputs of a block pass through shared memory, one row of every thread at a time, so that neighbours in a row of the
// result are written together: a thread writes one column.
template <int WM, int WN, int LM, int LN, int CM, int CN, int ROOM, bool write>
DEVICE void pass_outputs(const DotArgs& a, float (&c)[4 * CM][4 * CN], i64 first_m, i64 first_n, i64 batch, float* shared) {
  enum { N = WN * LN * 4 * CN, ROWS = WM * LM, STRIDE = N + 4 };
  static_assert(WM * WN * 32 == N, "a thread has a column");
  static_assert(ROWS * STRIDE <= ROOM, "a row of every thread has room where the pieces lie");
  const int warp = THREAD / 32, lane = THREAD % 32;
  float* const own = shared + (warp / WN * LM + lane / LN) * STRIDE + warp % WN * LN * 4 * CN + lane % LN * 4;
  const bool has_column = first_n + THREAD < a.n;
  const i64 column = has_column ? batch + AT(const i64, a.c_col)[first_n + THREAD] : 0;
#pragma unroll
  for (int i = 0; i < 4 * CM; ++i) {
    if (write) {
#pragma unroll
      for (int j = 0; j < 4 * CN; j += 4) *(Floats4*)(own + j * LN) = {{c[i][j], c[i][j + 1], c[i][j + 2], c[i][j + 3]}};
      BARRIER();
    }
#pragma unroll 4
    for (int row = 0; row < ROWS; ++row) {
      const i64 m = first_m + row / LM * LM * 4 * CM + i / 4 * LM * 4 + row % LM * 4 + i % 4;
      if (m >= a.m || !has_column) continue;
      const i64 at = column + AT(const i64, a.c_row)[m];
      if (write)
        store_float(a.c, a.c_type, at, shared[row * STRIDE + THREAD]);
      else
        shared[row * STRIDE + THREAD] = AT(const float, a.c)[at];
    }
    BARRIER();
    if (!write) {
#pragma unroll
      for (int j = 0; j < 4 * CN; j += 4) *(Floats4*)(c[i] + j) = *(const Floats4*)(own + j * LN);
      BARRIER();
    }
  }
}

template <int COUNT, int LANES>
DEVICE void read_piece(float (&to)[COUNT], const float* from) {
#pragma unroll
  for (int i = 0; i < COUNT; i += 4) *(Floats4*)(to + i) = *(const Floats4*)(from + i * LANES);
}

// The end of a group of N7.
template <int TM, int TN>
DEVICE void join_group(float (&c)[TM][TN], float (&even)[TM][TN], float (&odd)[TM][TN]) {
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j) c[i][j] = c[i][j] + (even[i][j] + odd[i][j]), even[i][j] = 0, odd[i][j] = 0;
}

// WM x WN warps of LM x LN threads.
template <int WM, int WN, int LM, int LN, int CM, int CN, int K, bool narrow, bool a_along_k, bool b_along_k>
DEVICE void strided_product(const DotArgs& a) {
  enum { T = WM * WN * 32, TM = 4 * CM, TN = 4 * CN, M = WM * LM * TM, N = WN * LN * TN, MS = M + 4, NS = N + 4, PIECE = K * (MS + NS) };
  SHARED(Floats4, pieces, 2 * PIECE / 4);
  float* const tiles = (float*)pieces;
  // Blocks that run together share lines of both operands.
  const i64 rows = (a.m + M - 1) / M, columns = (a.n + N - 1) / N;
  const i64 band = BLOCK_X / (8 * columns) * 8, band_rows = rows - band < 8 ? rows - band : 8;
  const i64 first_m = (band + (BLOCK_X - band * columns) % band_rows) * M, first_n = (BLOCK_X - band * columns) / band_rows * N;
  const i64* const batch = AT(const i64, a.batch) + BLOCK_Z * 3;
  float c[TM][TN], even[TM][TN], odd[TM][TN];
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j) c[i][j] = even[i][j] = odd[i][j] = 0;
  if (a.goes_on) pass_outputs<WM, WN, LM, LN, CM, CN, 2 * PIECE, false>(a, c, first_m, first_n, batch[2], tiles);
  const int warp = THREAD / 32, lane = THREAD % 32;
  const int tm = warp / WN * LM * TM + lane / LN * 4, tn = warp % WN * LN * TN + lane % LN * 4;
  const int count = (int)a.k, end = narrow ? (count + 31) / 32 * 32 : count;  // in N7 whole groups
  Carrier<M, K, MS, T, narrow, a_along_k> x;
  Carrier<N, K, NS, T, narrow, b_along_k> y;
  x.begin(x, a.a, batch[0], a.a_row, first_m, a.m, a.a_step);
  y.begin(y, a.b, batch[1], a.b_col, first_n, a.n, a.b_step);
  x.load(x, count, a.a_step);
  y.load(y, count, a.b_step);
  x.store(x, tiles);
  y.store(y, tiles + K * MS);
  BARRIER();
  int half = 0;
#pragma unroll 1
  for (int k = 0; k < end; k += K) {
    if (k + K < end) x.load(x, count - k - K, a.a_step), y.load(y, count - k - K, a.b_step);
    const float *const tile_a = tiles + half + tm, *const tile_b = tiles + half + K * MS + tn;
    if (narrow || end - k >= K) {
#pragma unroll
      for (int s = 0; s < K; ++s) {
        if (narrow && s != 0 && s % 32 == 0 && k + s >= end) break;
        float left[TM], right[TN];
        read_piece<TM, LM>(left, tile_a + s * MS);
        read_piece<TN, LN>(right, tile_b + s * NS);
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
          for (int h = 0; h < TN; ++h) {
            const int j = i % 2 == 0 ? h : TN - 1 - h;
            float& chain = !narrow ? c[i][j] : s % 2 == 0 ? even[i][j] : odd[i][j];
            chain = FMA32(left[i], right[j], chain);
          }
        if (narrow && (s + 1) % 32 == 0) join_group(c, even, odd);
      }
    } else {
#pragma unroll 1
      for (int s = 0; s < end - k; ++s) {
        float left[TM], right[TN];
        read_piece<TM, LM>(left, tile_a + s * MS);
        read_piece<TN, LN>(right, tile_b + s * NS);
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
          for (int j = 0; j < TN; ++j) c[i][j] = FMA32(left[i], right[j], c[i][j]);
      }
    }
    if (narrow && K < 32 && (k + K) % 32 == 0) join_group(c, even, odd);
    half = PIECE - half;
    if (k + K < end) x.store(x, tiles + half), y.store(y, tiles + half + K * MS);
    BARRIER();
  }
  pass_outputs<WM, WN, LM, LN, CM, CN, 2 * PIECE, true>(a, c, first_m, first_n, batch[2], tiles);
}

// name_<a><b>: k or m, k or n say along which axis 16 bytes of the operand lie together.
#define STRIDED_KERNELS(name, threads, blocks, ...)                                                         \
  TILED_KERNEL(name##_kk, DotArgs, threads, blocks) { strided_product<__VA_ARGS__, true, true>(a); }      \
  TILED_KERNEL(name##_kn, DotArgs, threads, blocks) { strided_product<__VA_ARGS__, true, false>(a); }     \
  TILED_KERNEL(name##_mk, DotArgs, threads, blocks) { strided_product<__VA_ARGS__, false, true>(a); }     \
  TILED_KERNEL(name##_mn, DotArgs, threads, blocks) { strided_product<__VA_ARGS__, false, false>(a); }
