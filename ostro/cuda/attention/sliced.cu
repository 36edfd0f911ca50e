#include "attention/masks.cuh"
#include "attention/rows.cuh"
#include "attention/slices.cuh"
// Attention and its gradient on integers (N21). A block of 128 threads takes one row: of queries forwards and for dq, of keys for
// dk and dv. Thread j makes the factor of the j-th row of a block of 128, all threads together its slices; then each thread adds
// the block to its elements of head_dim. delta and the sinks' gradient are those of attention.cu.

// One row of q, k, v or do into slices: the high ones, then the low ones.
BLOCK_KERNEL(attention_slices, AttentionSlicesArgs) {
  SHARED(u32, room, WARPS);
  const i64 i = BLOCK_X, h = BLOCK_Y, b = BLOCK_Z, at = place_of(a.x, b, h * a.head_step, i), row = (b * a.heads + h) * a.rows + i;
  u32 largest = 0;
  for (i64 d = THREAD; d < a.head_dim; d += PIECE) largest = larger_magnitude(largest, attention_element(a.x, at, d));
  const SliceCut cut = slice_cut(largest_of_block(largest, room));
  if (THREAD == 0) AT(float, a.to.scales)[row] = cut.scale;
  for (i64 d = THREAD; d < a.head_dim; d += PIECE) {
    const Slices s = slices_of(attention_element(a.x, at, d), cut);
    AT(i8, a.to.integers)[2 * row * a.wide + d] = (i8)s.high;
    AT(i8, a.to.integers)[(2 * row + 1) * a.wide + d] = (i8)s.low;
  }
}

DEVICE const i8* integers_of(const AttentionArgs& a, const SlicedPlace& x, i64 row) {
  return AT(const i8, x.integers) + 2 * row * a.wide;
}
DEVICE i64 query_row(const AttentionArgs& a, i64 b, i64 h, i64 i) { return (b * a.kv_heads * a.group + h) * a.pos + i; }
DEVICE i64 key_row(const AttentionArgs& a, i64 b, i64 h, i64 j) { return (b * a.kv_heads + h / a.group) * a.key_pos + j; }

// The product of a key's row, the left one, and a query's.
DEVICE float sliced_product(const AttentionArgs& a, const SlicedPlace& x, i64 x_row, const SlicedPlace& y, i64 y_row) {
  const i8 *p = integers_of(a, x, x_row), *q = integers_of(a, y, y_row);
  i32 high = 0, mixed = 0;
  for (i64 d = 0; d < a.head_dim; ++d) {
    const i32 ph = p[d], pl = p[a.wide + d], qh = q[d], ql = q[a.wide + d];
    high += ph * qh;
    mixed += ph * ql + pl * qh;
  }
  return add_slices(0.0f, high, mixed, AT(const float, x.scales)[x_row], AT(const float, y.scales)[y_row]);
}

// c and a block of a sum of `count` rows from `first` on, element d; the rows are the left operand, or their weights are.
DEVICE float add_rows(const AttentionArgs& a, const SlicedPlace& x, i64 first, int count, i64 d, const i32* high, const i32* low,
                      float scale, bool rows_left, float c) {
  i32 sum = 0, mixed = 0;
  for (int j = 0; j < count; ++j) {
    const i8* p = integers_of(a, x, first + j);
    const i32 ph = p[d], pl = p[a.wide + d];
    sum += ph * high[j];
    mixed += ph * low[j] + pl * high[j];
  }
  return rows_left ? add_slices(c, sum, mixed, 1.0f, scale) : add_slices(c, sum, mixed, scale, 1.0f);
}

BLOCK_KERNEL(attention_sliced, AttentionArgs) {
  SHARED(float, score, PIECE);
  SHARED(int, seen, PIECE);
  SHARED(i32, high, PIECE);
  SHARED(i32, low, PIECE);
  SHARED(u32, room, WARPS);
  const i64 i = BLOCK_X, h = BLOCK_Y, b = BLOCK_Z, origin = origin_of(a, b), q_row = query_row(a, b, h, i);
  float m = first_maximum(a, h), l = a.sink.at != 0 ? 1.0f : 0.0f;
  float acc[MOST_DIMS];
  for (int n = 0; n < MOST_DIMS; ++n) acc[n] = 0;
  for (i64 begin = 0; begin < a.key_pos; begin += PIECE) {
    const int keys = (int)(a.key_pos - begin < PIECE ? a.key_pos - begin : PIECE);
    const i64 first = key_row(a, b, h, begin);
    if (THREAD < keys) {
      float t;
      seen[THREAD] = attends(a, b, origin, i, begin + THREAD);
      score[THREAD] = capped_score(a, sliced_product(a, a.sliced_k, first + THREAD, a.sliced_q, q_row), t);
    }
    BARRIER();
    float top = m;
    for (int j = 0; j < keys; ++j)
      if (seen[j] && score[j] > top) top = score[j];
    BARRIER();
    float w = 0;
    if (THREAD < keys) {
      const float p = seen[THREAD] ? exp2_block(score[THREAD], top, a.kappa) : 0.0f;
      if (seen[THREAD]) w = p * AT(const float, a.sliced_v.scales)[first + THREAD];
      score[THREAD] = p;
    }
    const float w_scale = share_slices(w, high, low, room);
    const float c = exp2_block(m, top, a.kappa);
    l = l * c;
    for (int j = 0; j < keys; ++j) l = l + score[j];
    for (int n = 0; THREAD + n * PIECE < a.head_dim; ++n)
      acc[n] = add_rows(a, a.sliced_v, first, keys, THREAD + n * PIECE, high, low, w_scale, true, acc[n] * c);
    m = top;
    BARRIER();
  }
  end_row(a, b, h, i, m, l, acc);
}

// p and ds of one query row and one key. False, and both +0, where the key is masked.
DEVICE bool sliced_slopes(const AttentionArgs& a, i64 b, i64 h, i64 origin, i64 i, i64 j, float& p, float& ds) {
  p = 0, ds = 0;
  if (!attends(a, b, origin, i, j)) return false;
  float t;
  const i64 of_query = query_row(a, b, h, i), of_key = key_row(a, b, h, j);
  const float s = capped_score(a, sliced_product(a, a.sliced_k, of_key, a.sliced_q, of_query), t);
  p = probability_of(a, b, h, i, s);
  const float dp = sliced_product(a, a.sliced_v, of_key, a.sliced_do, of_query);
  ds = slope_of(a, b, h, i, p, dp, t);
  return true;
}

BLOCK_KERNEL(attention_dq_sliced, AttentionArgs) {
  SHARED(i32, high, PIECE);
  SHARED(i32, low, PIECE);
  SHARED(u32, room, WARPS);
  const i64 i = BLOCK_X, h = BLOCK_Y, b = BLOCK_Z, origin = origin_of(a, b);
  float dq[MOST_DIMS];
  for (int n = 0; n < MOST_DIMS; ++n) dq[n] = 0;
  for (i64 begin = 0; begin < a.key_pos; begin += PIECE) {
    const int keys = (int)(a.key_pos - begin < PIECE ? a.key_pos - begin : PIECE);
    const i64 first = key_row(a, b, h, begin);
    float p, ds, w = 0;
    if (THREAD < keys && sliced_slopes(a, b, h, origin, i, begin + THREAD, p, ds))
      w = ds * AT(const float, a.sliced_k.scales)[first + THREAD];
    const float w_scale = share_slices(w, high, low, room);
    for (int n = 0; THREAD + n * PIECE < a.head_dim; ++n)
      dq[n] = add_rows(a, a.sliced_k, first, keys, THREAD + n * PIECE, high, low, w_scale, true, dq[n]);
    BARRIER();
  }
  const i64 to = place_of(a.dq, b, h, i);
  for (int n = 0; THREAD + n * PIECE < a.head_dim; ++n)
    store_float(a.dq.at, a.dq.type, to + (THREAD + n * PIECE) * a.dq.dim, dq[n] * a.scale + 0.0f);
}

// dk and dv of one key. Blocks of 128 queries are by absolute position.
BLOCK_KERNEL(attention_dkv_sliced, AttentionArgs) {
  SHARED(i32, p_high, PIECE);
  SHARED(i32, p_low, PIECE);
  SHARED(i32, ds_high, PIECE);
  SHARED(i32, ds_low, PIECE);
  SHARED(u32, room, WARPS);
  const i64 j = BLOCK_X, kv = BLOCK_Y, b = BLOCK_Z, origin = origin_of(a, b);
  for (int n = 0; n * PIECE < a.head_dim; ++n) {
    const i64 d = THREAD + n * PIECE;
    float dk_leaf[MOST_LEAVES], dv_leaf[MOST_LEAVES];
    i64 begin = 0;
    for (i64 leaf = 0; leaf < a.leaves; ++leaf) {
      const i64 end = AT(const i64, a.leaf_ends)[leaf];
      float dk = 0, dv = 0;
      for (i64 g = 0; g < a.group; ++g) {
        const i64 h = kv * a.group + g;
        for (i64 first = begin; first < end;) {
          const i64 place = ((origin + first) % PIECE + PIECE) % PIECE;
          const int rows = (int)(end - first < PIECE - place ? end - first : PIECE - place);
          const i64 row = query_row(a, b, h, first);
          float p = 0, ds = 0, of_v = 0, of_k = 0;
          if (THREAD < rows && sliced_slopes(a, b, h, origin, first + THREAD, j, p, ds)) {
            of_v = p * AT(const float, a.sliced_do.scales)[row + THREAD];
            of_k = ds * AT(const float, a.sliced_q.scales)[row + THREAD];
          }
          const float v_scale = share_slices(of_v, p_high, p_low, room), k_scale = share_slices(of_k, ds_high, ds_low, room);
          if (d < a.head_dim) {
            dk = add_rows(a, a.sliced_q, row, rows, d, ds_high, ds_low, k_scale, false, dk);
            dv = add_rows(a, a.sliced_do, row, rows, d, p_high, p_low, v_scale, false, dv);
          }
          first += rows;
          BARRIER();
        }
      }
      dk_leaf[leaf] = dk;
      dv_leaf[leaf] = dv;
      begin = end;
    }
    if (d < a.head_dim) end_key(a, b, kv, j, d, dk_leaf, dv_leaf);
  }
}
