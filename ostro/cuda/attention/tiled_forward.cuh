// Attention by tiles: a block takes R query rows of one head, and keys in blocks of 128. Scores lie in shared memory by key, so
// each row's chains, the sum of exponentials among them, belong to single threads.

// KEYS: of a tile of scores. WIDE: head_dim, or more. PIECE_D, PIECE_V: numbers of head_dim, rows of values that come at a time.
template <int R, int T, int KEYS, int WIDE, int PIECE_D, int PIECE_V, bool narrow>
DEVICE void tiled_attention(const AttentionArgs& a) {
  enum { N = R * KEYS / T / 8, DIMS = R * WIDE / T / 8, PARTS = T / R, PART = 128 / PARTS };
  enum { PIECE = KEYS * PIECE_D > WIDE * PIECE_V ? KEYS * PIECE_D : WIDE * PIECE_V };
  DYNAMIC_SHARED(float, shared);
  float* const queries = shared;                // [WIDE][R], turned
  float* const scores = queries + WIDE * R;     // [128][R], turned
  float* const piece = scores + 128 * R;
  float* const factors = piece + PIECE;         // [R]
  float* const sums = factors + R;              // [R]
  float* const tops = sums + R;                 // [T]
  const i64 h = BLOCK_X, b = BLOCK_Z, origin = origin_of(a, b);
  const int pos = (int)a.pos, first = ((pos + R - 1) / R - 1 - (int)BLOCK_Y) * R;  // the longest rows come first
  const int last = first + R < pos ? first + R - 1 : pos - 1;
  const Own<R, T> own = Own<R, T>::here();
  const TileRows keys = tile_rows(a.k, b, h, a.key_pos, a.head_dim), values = tile_rows(a.v, b, h, a.key_pos, a.head_dim);
  const int row = THREAD % R, part = THREAD / R;
  const RowKeys reach = row_keys(a, b, origin, first + row);
  const int until = row_keys(a, b, origin, last).end;
  float m = first_maximum(a, h);
  if (part == 0) sums[row] = a.sink.at != 0 ? 1.0f : 0.0f;
  turn_in<R, WIDE, T, narrow>(queries, tile_rows(a.q, b, h, a.pos, a.head_dim), first, 0);
  float acc[8][DIMS];
  clear(acc);
  for (int begin = row_keys(a, b, origin, first).begin / 128 * 128; begin < until; begin += 128) {
    const int count = until - begin < 128 ? until - begin : 128;
    for (int sub = 0; sub < count; sub += KEYS) {
      float s[8][N];
      clear(s);
      add_dots<R, T, N, KEYS, PIECE_D, narrow>(s, own, queries, piece, keys, begin + sub);
      put_turned(scores + sub * R, own, s);
    }
    BARRIER();
    // A thread has keys [low, high) of its row here. What it does not attend to becomes less than every score.
    const int low = part * PART, high = low + PART, from = reach.begin - begin, to = reach.end - begin;
    const bool segmented = a.query_segments.at != 0;
    if (from > low || to < high || segmented || a.soft_cap > 0)
      for (int j = low; j < high; ++j) {
        float& s = scores[turned<R>(j, row)];
        if (j < from || j >= to || (segmented && !in_segment(a, b, reach.segment, begin + j)))
          s = f32_of(0xff800000u);
        else if (a.soft_cap > 0)
          s = a.soft_cap * tanh32((s * a.scale) / a.soft_cap);
      }
    float top = m;
#pragma unroll 2
    for (int j = low; j < high; j += 4) {
      const float* const s = scores + turned<R>(j, row);
#pragma unroll
      for (int e = 0; e < 4; ++e) top = s[e * R] > top ? s[e * R] : top;
    }
    if (PARTS > 1) {
      tops[THREAD] = top;
      BARRIER();
      for (int n = 0; n < PARTS; ++n) top = tops[n * R + row] > top ? tops[n * R + row] : top;
    }
    const float c = exp2_block(m, top, a.kappa);
    m = top;
    float l = 0;
    if (part == 0) {
      factors[row] = c;
      l = sums[row] * c;
    }
#pragma unroll 2
    for (int j = low; j < high; j += 4) {
      float* const s = scores + turned<R>(j, row);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float p = exp2_below(s[e * R], top, a.kappa);
        l = l + p;
        s[e * R] = narrow && part == 0 ? round_bf16(p) : p;
      }
    }
    if (part == 0) sums[row] = l;
    // The sum goes on through the parts.
    for (int n = 1; n < PARTS; ++n) {
      BARRIER();
      if (part != n) continue;
      l = sums[row];
#pragma unroll 2
      for (int j = low; j < high; j += 4) {
        float* const p = scores + turned<R>(j, row);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          l = l + p[e * R];
          if (narrow) p[e * R] = round_bf16(p[e * R]);
        }
      }
      sums[row] = l;
    }
    BARRIER();
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float factor = factors[own_row(own, i)];
#pragma unroll
      for (int j = 0; j < DIMS; ++j) acc[i][j] = acc[i][j] * factor;
    }
    add_rows<R, T, DIMS, WIDE, PIECE_V, narrow>(acc, own, scores, piece, values, begin, count);
  }
  BARRIER();
  if (part == 0) {
    const float r = sums[row] == 0.0f ? 0.0f : 1.0f / sums[row];  // a row without keys gives +0
    factors[row] = r;
    if (first + row < a.pos) {
      AT(float, a.m.at)[place_of(a.m, b, h, first + row)] = m + 0.0f;
      AT(float, a.r.at)[place_of(a.r, b, h, first + row)] = r;
    }
  }
  BARRIER();
  const TileRows out = tile_rows(a.out, b, h, a.pos, a.head_dim);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float r = factors[own_row(own, i)];
#pragma unroll
    for (int j = 0; j < DIMS; j += 4) {
      Floats4 x;
#pragma unroll
      for (int e = 0; e < 4; ++e) x.x[e] = (acc[i][j + e] + 0.0f) * r;
      store_four(out, first + own_row(own, i), own_column(own, j), x);
    }
  }
}
