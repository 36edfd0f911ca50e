#include "products/operand.cuh"
#include "products/outputs.cuh"
// Products (N6, N7, cut by N8): a chain over k stays in one thread. Large products go by tiles in shared memory.

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

KERNEL(dot, DotArgs) { dot_output<dot_of>(a); }

// Tiles: a block of 256 threads makes 16 TM x 16 TN outputs, a thread TM x TN of them, each with a chain of its own that goes
// through k in pieces of 32, which lie in shared memory. Without leaves. In N7 a piece is a group; what lies beyond k is +0
// there, as the clause says.
template <int TM, int TN, bool narrow>
DEVICE void tile_product(const DotArgs& a) {
  enum { M = 16 * TM, N = 16 * TN, K = 32 };
  SHARED(float, tile_a, K * (M + 4));
  SHARED(float, tile_b, K * (N + 4));
  const i64 first_m = BLOCK_Y * M, first_n = BLOCK_X * N;
  const i64* const batch = AT(const i64, a.batch) + BLOCK_Z * 3;
  const int tm = THREAD / 16, tn = THREAD % 16;
  float c[TM][TN], even[TM][TN], odd[TM][TN];
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const i64 m = first_m + tm + 16 * i, n = first_n + tn + 16 * j;
      c[i][j] = a.goes_on && m < a.m && n < a.n
                    ? AT(const float, a.c)[batch[2] + AT(const i64, a.c_row)[m] + AT(const i64, a.c_col)[n]]
                    : 0.0f;
    }
  for (i64 first_k = 0; first_k < a.k; first_k += K) {
    const int count = (int)(a.k - first_k < K ? a.k - first_k : K);
    for (int t = THREAD; t < M * K; t += 256) {
      const int k = a.a_along_k ? t % K : t / M, i = a.a_along_k ? t / K : t % M;
      const i64 m = first_m + i;
      tile_a[k * (M + 4) + i] =
          m < a.m && k < count
              ? load_float(a.a, a.a_type, batch[0] + AT(const i64, a.a_row)[m] + AT(const i64, a.a_col)[first_k + k])
              : 0.0f;
    }
    for (int t = THREAD; t < N * K; t += 256) {
      const int k = a.b_along_k ? t % K : t / N, j = a.b_along_k ? t / K : t % N;
      const i64 n = first_n + j;
      float x = 0;
      if (n < a.n && k < count) {
        const bool stored = a.b_type == TYPE_I8;
        x = operand_b(a, narrow, batch[1] + AT(const i64, a.b_row)[first_k + k] + AT(const i64, a.b_col)[n],
                      stored ? AT(const i64, a.s_row)[first_k + k] + AT(const i64, a.s_col)[n] : 0);
      }
      tile_b[k * (N + 4) + j] = x;
    }
    BARRIER();
    if (narrow) {
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) even[i][j] = 0, odd[i][j] = 0;
    }
    const int steps = narrow ? (int)K : count;
    for (int k = 0; k < steps; k += narrow ? 2 : 1) {
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) {
          const int x = k * (M + 4) + tm + 16 * i, y = k * (N + 4) + tn + 16 * j;
          if (narrow) {
            even[i][j] = FMA32(tile_a[x], tile_b[y], even[i][j]);
            odd[i][j] = FMA32(tile_a[x + M + 4], tile_b[y + N + 4], odd[i][j]);
          } else {
            c[i][j] = FMA32(tile_a[x], tile_b[y], c[i][j]);
          }
        }
    }
    if (narrow) {
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) c[i][j] = c[i][j] + (even[i][j] + odd[i][j]);
    }
    BARRIER();
  }
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const i64 m = first_m + tm + 16 * i, n = first_n + tn + 16 * j;
      if (m < a.m && n < a.n)
        store_float(a.c, a.c_type, batch[2] + AT(const i64, a.c_row)[m] + AT(const i64, a.c_col)[n], c[i][j]);
    }
}

BLOCK_KERNEL(dot_tiles_f32, DotArgs) { tile_product<8, 8, false>(a); }
BLOCK_KERNEL(dot_tiles_bf16, DotArgs) { tile_product<8, 4, true>(a); }

KERNEL(expert_dot, ExpertDotArgs) { expert_dot_output<dot_of>(a); }

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
