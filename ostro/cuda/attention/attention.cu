#include "attention/masks.cuh"
#include "attention/rows.cuh"
// Attention and its gradient (N9). A block of 128 threads takes one row: of queries forwards and for dq, of keys for dk and
// dv. Thread j makes the score of the j-th key (or query) of a piece of 128; then the chains over the piece go on, each in
// one thread, an element of head_dim or the sum of exponentials.

// The dot over head_dim of one query row and one key row.
DEVICE float attention_dot(const AttentionArgs& a, const AttentionPlace& x, i64 x_at, const AttentionPlace& y, i64 y_at) {
  const bool narrow = a.q.type == TYPE_BF16;
  Chain c = {0, 0, 0, 0};
  for (i64 d = 0; d < a.head_dim; ++d) chain_add(c, narrow, attention_element(x, x_at, d), attention_element(y, y_at, d));
  return chain_end(c, narrow);
}

BLOCK_KERNEL(attention, AttentionArgs) {
  SHARED(float, score, PIECE);
  SHARED(int, seen, PIECE);
  const i64 i = BLOCK_X, h = BLOCK_Y, b = BLOCK_Z, origin = origin_of(a, b);
  const bool narrow = a.q.type == TYPE_BF16;
  const i64 q_at = place_of(a.q, b, h, i);
  float m = first_maximum(a, h), l = a.sink.at != 0 ? 1.0f : 0.0f;
  bool any = a.sink.at != 0;
  float acc[MOST_DIMS];
  for (int n = 0; n < MOST_DIMS; ++n) acc[n] = 0;
  for (i64 begin = 0; begin < a.key_pos; begin += PIECE) {
    const int keys = (int)(a.key_pos - begin < PIECE ? a.key_pos - begin : PIECE);
    if (THREAD < keys) {
      float t;
      seen[THREAD] = attends(a, b, origin, i, begin + THREAD);
      score[THREAD] = capped_score(a, attention_dot(a, a.q, q_at, a.k, place_of(a.k, b, h, begin + THREAD)), t);
    }
    BARRIER();
    float top = m;
    for (int j = 0; j < keys; ++j) {
      if (!seen[j]) continue;
      any = true;
      if (score[j] > top) top = score[j];
    }
    BARRIER();
    if (THREAD < keys) score[THREAD] = seen[THREAD] ? exp2_block(score[THREAD], top, a.kappa) : 0.0f;
    BARRIER();
    const float c = exp2_block(m, top, a.kappa);
    l = l * c;
    for (int j = 0; j < keys; ++j) l = l + score[j];
    for (int n = 0; THREAD + n * PIECE < a.head_dim; ++n) {
      const i64 d = THREAD + n * PIECE;
      Chain x = {acc[n] * c, 0, 0, 0};
      for (int j = 0; j < keys; ++j)
        chain_add(x, narrow, narrow ? round_bf16(score[j]) : score[j],
                  attention_element(a.v, place_of(a.v, b, h, begin + j), d));
      acc[n] = chain_end(x, narrow);
    }
    m = top;
    BARRIER();
  }
  end_row(a, b, h, i, m, l, acc);
}

// delta: one block of 64 threads a query row.
BLOCK_KERNEL(attention_delta, AttentionArgs) {
  const i64 i = BLOCK_X, h = BLOCK_Y, b = BLOCK_Z;
  const i64 do_at = place_of(a.dout, b, h, i), o_at = place_of(a.out, b, h, i);
  float lane = 0;
  for (i64 d = THREAD; d < a.head_dim; d += 64)
    lane = lane + attention_element(a.dout, do_at, d) * attention_element(a.out, o_at, d);
  const float delta = row_sum32(lane);
  if (THREAD == 0) AT(float, a.delta.at)[(b * a.pos + i) * a.kv_heads * a.group + h] = delta;
}

// p and ds of one query row and one key; both +0 where the key is masked, rounded for the dots that read them.
DEVICE void attention_slopes(const AttentionArgs& a, i64 b, i64 h, i64 origin, i64 i, i64 j, float& p, float& ds) {
  p = 0, ds = 0;
  if (!attends(a, b, origin, i, j)) return;
  float t;
  const float s = capped_score(a, attention_dot(a, a.q, place_of(a.q, b, h, i), a.k, place_of(a.k, b, h, j)), t);
  p = probability_of(a, b, h, i, s);
  const float dp = attention_dot(a, a.dout, place_of(a.dout, b, h, i), a.v, place_of(a.v, b, h, j));
  ds = slope_of(a, b, h, i, p, dp, t);
  if (a.q.type == TYPE_BF16) p = round_bf16(p), ds = round_bf16(ds);
}

BLOCK_KERNEL(attention_dq, AttentionArgs) {
  SHARED(float, slopes, PIECE);
  const i64 i = BLOCK_X, h = BLOCK_Y, b = BLOCK_Z, origin = origin_of(a, b);
  const bool narrow = a.q.type == TYPE_BF16;
  Chain dq[MOST_DIMS];
  for (int n = 0; n < MOST_DIMS; ++n) dq[n] = {0, 0, 0, 0};
  for (i64 begin = 0; begin < a.key_pos; begin += PIECE) {
    const int keys = (int)(a.key_pos - begin < PIECE ? a.key_pos - begin : PIECE);
    float p, ds = 0;
    if (THREAD < keys) attention_slopes(a, b, h, origin, i, begin + THREAD, p, ds);
    slopes[THREAD] = ds;
    BARRIER();
    for (int n = 0; THREAD + n * PIECE < a.head_dim; ++n)
      for (int j = 0; j < keys; ++j)
        chain_add(dq[n], narrow, slopes[j], attention_element(a.k, place_of(a.k, b, h, begin + j), THREAD + n * PIECE));
    BARRIER();
  }
  const i64 to = place_of(a.dq, b, h, i);
  for (int n = 0; THREAD + n * PIECE < a.head_dim; ++n)
    store_float(a.dq.at, a.dq.type, to + (THREAD + n * PIECE) * a.dq.dim, chain_end(dq[n], narrow) * a.scale + 0.0f);
}

// dk and dv of one key. Groups of 32 queries are by absolute position: leading places are +0.
BLOCK_KERNEL(attention_dkv, AttentionArgs) {
  SHARED(float, probabilities, PIECE);
  SHARED(float, slopes, PIECE);
  const i64 j = BLOCK_X, kv = BLOCK_Y, b = BLOCK_Z, origin = origin_of(a, b);
  const bool narrow = a.q.type == TYPE_BF16;
  for (int n = 0; n * PIECE < a.head_dim; ++n) {
    const i64 d = THREAD + n * PIECE;
    float dk_leaf[MOST_LEAVES], dv_leaf[MOST_LEAVES];
    i64 begin = 0;
    for (i64 leaf = 0; leaf < a.leaves; ++leaf) {
      const i64 end = AT(const i64, a.leaf_ends)[leaf];
      Chain dk = {0, 0, 0, 0}, dv = {0, 0, 0, 0};
      const i64 absolute = origin + begin, group = absolute >= 0 ? absolute / 32 * 32 : -((-absolute) / 32 * 32);
      const i64 start = narrow ? group - origin : begin;
      for (i64 g = 0; g < a.group && begin < end; ++g) {
        const i64 h = kv * a.group + g;
        for (i64 first = start; first < end; first += PIECE) {
          const int rows = (int)(end - first < PIECE ? end - first : PIECE);
          float p = 0, ds = 0;
          if (THREAD < rows && first + THREAD >= begin) attention_slopes(a, b, h, origin, first + THREAD, j, p, ds);
          probabilities[THREAD] = p;
          slopes[THREAD] = ds;
          BARRIER();
          for (int r = 0; d < a.head_dim && r < rows; ++r) {
            const bool inside = first + r >= begin;
            const float q = inside ? attention_element(a.q, place_of(a.q, b, h, first + r), d) : 0.0f;
            const float dout = inside ? attention_element(a.dout, place_of(a.dout, b, h, first + r), d) : 0.0f;
            chain_add(dk, narrow, slopes[r], q);
            chain_add(dv, narrow, probabilities[r], dout);
          }
          BARRIER();
        }
        dk.c = chain_end(dk, narrow);
        dv.c = chain_end(dv, narrow);
      }
      dk_leaf[leaf] = dk.c;
      dv_leaf[leaf] = dv.c;
      begin = end;
    }
    if (d < a.head_dim) end_key(a, b, kv, j, d, dk_leaf, dv_leaf);
  }
}

// The gradient of the sinks: one thread a query head, serial over the tokens.
KERNEL(attention_dsink, AttentionArgs) {
  const i64 h = global_thread(), heads = a.kv_heads * a.group;
  if (h >= heads) return;
  float leaf_sum[MOST_LEAVES];
  i64 begin = 0;
  for (i64 leaf = 0; leaf < a.leaves; ++leaf) {
    const i64 end = AT(const i64, a.leaf_ends)[leaf];
    float sum = 0;
    for (i64 b = 0; b < a.batch; ++b)
      for (i64 i = begin; i < end; ++i) {
        const float p = probability_of(a, b, h, i, first_maximum(a, h));
        sum = sum + neg32(p * AT(const float, a.delta.at)[(b * a.pos + i) * heads + h]);
      }
    leaf_sum[leaf] = sum;
    begin = end;
  }
  const i64 count = a.leaves;
  AT(float, a.dsink.at)[place_of(a.dsink, 0, h, 0)] = join_leaves(leaf_sum, count, 1, &count);
}
