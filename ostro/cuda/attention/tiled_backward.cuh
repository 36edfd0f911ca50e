// The gradient of attention by tiles. For dq a block takes R query rows of one head, for dk and dv R keys of one head of keys.
// Scores are made again, tile by tile.

// What is rare in a tile of scores, by way of shared memory, so that it is one loop: with a soft cap scores become the cap's
// tanh, and those of keys of another segment -infinity. Output (i, j) is of a query row and a key: rows of the tile are
// queries, or with `keys_down` keys. first_key: that of the tile.
template <int R, int T, int N, bool keys_down, int ROWS>
DEVICE void rare_scores(float (&s)[8][N], float* through, const Own<R, T>& own, const AttentionArgs& a, const Queries<ROWS>& of, i64 b,
                        int first_key) {
  put_turned(through, own, s);
  BARRIER();
  for (int n = THREAD; n < 8 * N * T; n += T) {
    const int row = n % R, column = n / R, query = keys_down ? column : row, key = first_key + (keys_down ? row : column);
    float& x = through[turned<R>(column, row)];
    if (a.soft_cap > 0) x = tanh32((x * a.scale) / a.soft_cap);
    if (key < a.key_pos && !in_segment(a, b, of.segment[query], key)) x = f32_of(0xff800000u);
  }
  BARRIER();
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < N; ++j) s[i][j] = through[turned<R>(own_column(own, j), own_row(own, i))];
  BARRIER();
}

// Scores and dp of a tile become p and ds; both +0 where the key is masked, rounded for the dots that read them.
template <int R, int T, int N, bool narrow, bool keys_down, int ROWS>
DEVICE void to_slopes(float (&s)[8][N], float (&dp)[8][N], float* through, const Own<R, T>& own, const AttentionArgs& a,
                      const Queries<ROWS>& of, i64 b, int first_key) {
  const bool capped = a.soft_cap > 0;
  if (capped || a.query_segments.at != 0) rare_scores<R, T, N, keys_down>(s, through, own, a, of, b, first_key);
  const float cap = capped ? a.soft_cap : 1.0f, bend = capped ? 1.0f : 0.0f;  // exact where there is no cap
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const int row = own_row(own, i), column = own_column(own, j);
      const int query = keys_down ? column : row, key = first_key + (keys_down ? row : column);
      const bool seen = key >= of.begin[query] && key < of.end[query] && !(s[i][j] < -3e38f);
      const float p = exp2_below(s[i][j] * cap, of.m[query], a.kappa) * of.r[query], t = s[i][j] * bend;
      const float ds = p * (dp[i][j] - of.delta[query]) * (1.0f - t * t);
      s[i][j] = seen ? narrow ? round_bf16(p) : p : 0.0f;
      dp[i][j] = seen ? narrow ? round_bf16(ds) : ds : 0.0f;
    }
}

template <int R, int T, int KEYS, int WIDE, int PIECE_D, int PIECE_V, bool narrow>
DEVICE void tiled_dq(const AttentionArgs& a) {
  enum { N = R * KEYS / T / 8, DIMS = R * WIDE / T / 8 };
  enum { PIECE = KEYS * PIECE_D > WIDE * PIECE_V ? KEYS * PIECE_D : WIDE * PIECE_V };
  DYNAMIC_SHARED(float, shared);
  float* const queries = shared;             // [WIDE][R], turned
  float* const douts = queries + WIDE * R;   // [WIDE][R], turned
  float* const slopes = douts + WIDE * R;    // [KEYS][R], turned
  float* const piece = slopes + KEYS * R;
  Queries<R>& rows = *(Queries<R>*)(piece + PIECE);
  const i64 h = BLOCK_X, b = BLOCK_Z, origin = origin_of(a, b);
  const int pos = (int)a.pos, first = ((pos + R - 1) / R - 1 - (int)BLOCK_Y) * R;  // the longest rows come first
  const int last = first + R < pos ? first + R - 1 : pos - 1;
  const Own<R, T> own = Own<R, T>::here();
  const TileRows keys = tile_rows(a.k, b, h, a.key_pos, a.head_dim), values = tile_rows(a.v, b, h, a.key_pos, a.head_dim);
  turn_in<R, WIDE, T, narrow>(queries, tile_rows(a.q, b, h, a.pos, a.head_dim), first, 0);
  turn_in<R, WIDE, T, narrow>(douts, tile_rows(a.dout, b, h, a.pos, a.head_dim), first, 0);
  queries_in(rows, a, b, h, origin, first, THREAD);
  float dq[8][DIMS];
  clear(dq);
  const int until = row_keys(a, b, origin, last).end;
  for (int begin = row_keys(a, b, origin, first).begin / KEYS * KEYS; begin < until; begin += KEYS) {
    float s[8][N], dp[8][N];
    clear(s);
    clear(dp);
    add_dots<R, T, N, KEYS, PIECE_D, narrow>(s, own, queries, piece, keys, begin);
    add_dots<R, T, N, KEYS, PIECE_D, narrow>(dp, own, douts, piece, values, begin);
    to_slopes<R, T, N, narrow, false>(s, dp, slopes, own, a, rows, b, begin);
    put_turned(slopes, own, dp);
    add_rows<R, T, DIMS, WIDE, PIECE_V, narrow>(dq, own, slopes, piece, keys, begin, KEYS);
  }
  put_rows(tile_rows(a.dq, b, h, a.pos, a.head_dim), first, own, dq, a.scale);
}

// Groups of 32 queries are by absolute position: leading places are +0.
template <int R, int T, int ROWS, int WIDE, int PIECE_D, int PIECE_V, bool narrow>
DEVICE void tiled_dkv(const AttentionArgs& a) {
  enum { N = R * ROWS / T / 8, DIMS = R * WIDE / T / 8 };
  enum { PIECE = ROWS * PIECE_D > WIDE * PIECE_V ? ROWS * PIECE_D : WIDE * PIECE_V };
  DYNAMIC_SHARED(float, shared);
  float* const keys = shared;              // [WIDE][R], turned
  float* const values = keys + WIDE * R;   // [WIDE][R], turned
  float* const parts = values + WIDE * R;  // p and then ds, [ROWS][R], turned
  float* const piece = parts + ROWS * R;
  Queries<ROWS>& rows = *(Queries<ROWS>*)(piece + PIECE);
  const i64 kv = BLOCK_X, b = BLOCK_Z, origin = origin_of(a, b);
  const int first_key = (int)BLOCK_Y * R;
  const Own<R, T> own = Own<R, T>::here();
  const i64 any = kv * a.group;
  turn_in<R, WIDE, T, narrow>(keys, tile_rows(a.k, b, any, a.key_pos, a.head_dim), first_key, 0);
  turn_in<R, WIDE, T, narrow>(values, tile_rows(a.v, b, any, a.key_pos, a.head_dim), first_key, 0);
  float dk[8][DIMS], dv[8][DIMS];
  clear(dk);
  clear(dv);
  // The queries that may attend to one of the keys.
  i64 from = 0, until = a.pos;
  if (a.causal && (a.prefix.at == 0 || first_key >= attention_integer(a.prefix, place_of(a.prefix, b, 0, 0)))) from = first_key - origin;
  if (a.window > 0 && first_key + R - 1 + a.window - origin < until) until = first_key + R - 1 + a.window - origin;
  if (a.key_limit.at != 0 && first_key >= attention_integer(a.key_limit, place_of(a.key_limit, b, 0, 0))) until = 0;
  const i64 start = narrow ? -(origin % 32) : 0;
  from = from > 0 ? start + (from - start) / ROWS * ROWS : start;
  for (i64 g = 0; g < a.group; ++g) {
    const i64 h = any + g;
    const TileRows queries = tile_rows(a.q, b, h, a.pos, a.head_dim), douts = tile_rows(a.dout, b, h, a.pos, a.head_dim);
    for (int first = (int)from; first < until; first += ROWS) {
      float s[8][N], dp[8][N];
      clear(s);
      clear(dp);
      add_dots<R, T, N, ROWS, PIECE_D, narrow>(s, own, keys, piece, queries, first);
      for (int t = THREAD; t < ROWS; t += T) queries_in(rows, a, b, h, origin, first, t);
      add_dots<R, T, N, ROWS, PIECE_D, narrow>(dp, own, values, piece, douts, first);
      to_slopes<R, T, N, narrow, true>(s, dp, parts, own, a, rows, b, first_key);
      put_turned(parts, own, s);
      add_rows<R, T, DIMS, WIDE, PIECE_V, narrow>(dv, own, parts, piece, douts, first, ROWS);
      BARRIER();
      put_turned(parts, own, dp);
      add_rows<R, T, DIMS, WIDE, PIECE_V, narrow>(dk, own, parts, piece, queries, first, ROWS);
    }
  }
  put_rows(tile_rows(a.dk, b, any, a.key_pos, a.head_dim), first_key, own, dk, a.partial ? 1.0f : a.scale);
  put_rows(tile_rows(a.dv, b, any, a.key_pos, a.head_dim), first_key, own, dv, 1.0f);
}
