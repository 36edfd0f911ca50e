// What kernels by rows have in common, whether their products are of floats (N9) or of integers (N21): a block of 128 threads takes
// one row, and keys or queries by pieces of 128.

enum { PIECE = 128, MOST_HEAD_DIM = 1024, MOST_DIMS = MOST_HEAD_DIM / PIECE };

// A product's score after the soft cap; t is the cap's tanh.
DEVICE float capped_score(const AttentionArgs& a, float s, float& t) {
  t = 0;
  if (!(a.soft_cap > 0)) return s;
  t = tanh32((s * a.scale) / a.soft_cap);
  return a.soft_cap * t;
}

// Writes the query row: its maximum, 1 / l and the sums times it.
DEVICE void end_row(const AttentionArgs& a, i64 b, i64 h, i64 i, float m, float l, const float* acc) {
  const float r = l == 0.0f ? 0.0f : 1.0f / l;  // a row without keys gives +0
  if (THREAD == 0) {
    AT(float, a.m.at)[place_of(a.m, b, h, i)] = m + 0.0f;
    AT(float, a.r.at)[place_of(a.r, b, h, i)] = r;
  }
  const i64 to = place_of(a.out, b, h, i);
  for (int n = 0; THREAD + n * PIECE < a.head_dim; ++n)
    store_float(a.out.at, a.out.type, to + (THREAD + n * PIECE) * a.out.dim, (acc[n] + 0.0f) * r);
}

// p of a query row and a key whose score is s, and ds of such; t is the cap's tanh.
DEVICE float probability_of(const AttentionArgs& a, i64 b, i64 h, i64 i, float s) {
  return exp2_block(s, AT(const float, a.m.at)[place_of(a.m, b, h, i)], a.kappa) * AT(const float, a.r.at)[place_of(a.r, b, h, i)];
}
DEVICE float slope_with(const AttentionArgs& a, float p, float dp, float delta, float t) {
  const float ds = p * (dp - delta);
  return a.soft_cap > 0 ? ds * (1.0f - t * t) : ds;
}
DEVICE float slope_of(const AttentionArgs& a, i64 b, i64 h, i64 i, float p, float dp, float t) {
  return slope_with(a, p, dp, AT(const float, a.delta.at)[(b * a.pos + i) * a.kv_heads * a.group + h], t);
}

// Writes element d of dk and dv of key j.
DEVICE void end_key(const AttentionArgs& a, i64 b, i64 kv, i64 j, i64 d, float* dk_leaf, float* dv_leaf) {
  const i64 count = a.leaves;
  const float dk = join_leaves(dk_leaf, count, 1, &count), dv = join_leaves(dv_leaf, count, 1, &count);
  store_float(a.dk.at, a.dk.type, place_of(a.dk, b, kv * a.group, j) + d * a.dk.dim, (a.partial ? dk : dk * a.scale) + 0.0f);
  store_float(a.dv.at, a.dv.type, place_of(a.dv, b, kv * a.group, j) + d * a.dv.dim, dv + 0.0f);
}
