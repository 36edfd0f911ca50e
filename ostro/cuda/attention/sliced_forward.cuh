// The output of attention on integers by tiles of 64 queries.

template <int WIDE>
DEVICE void sliced_attention(const AttentionArgs& a) {
  using Tile = SlicedTile<WIDE>;
  enum { P_ROW = SLICE_COLUMNS + 1 };
  DYNAMIC_SHARED(u8, queries);                         // 64 rows
  u8* const keys = queries + Tile::ROWS_BYTES;         // 128 rows
  u8* const values = keys + Tile::COLUMNS_BYTES;       // a turned block
  float* const weights = (float*)(values + Tile::TURNED_BYTES);  // p: [64][P_ROW]
  float* const key_scales = weights + SLICE_ROWS * P_ROW;
  float* const value_scales = key_scales + SLICE_COLUMNS;
  float* const factors = value_scales + SLICE_COLUMNS;  // [64]
  const QueryTile tile = query_tile(a);
  const int b = tile.b, h = tile.h, first = tile.first + tile.own;
  const int lane = THREAD % 32, own = tile.own;
  const RowKeys reach[2] = {row_keys(a, b, tile.origin, first), row_keys(a, b, tile.origin, first + 8)};
  const float q_scale[2] = {scale_of(a.sliced_q, tile.head, a.pos, first), scale_of(a.sliced_q, tile.head, a.pos, first + 8)};
  const u64 of_keys = sliced_head(a.sliced_k, tile.kv, a.key_pos, WIDE);
  float m[2] = {first_maximum(a, h), first_maximum(a, h)}, l = a.sink.at != 0 ? 1.0f : 0.0f;  // l: of row lane of the warp, by its first 16 threads
  float acc[WIDE / 8][4];
#pragma unroll
  for (int i = 0; i < WIDE / 2; ++i) acc[i / 4][i % 4] = 0;
  int block = tile.block;
  copy_sliced<WIDE>(queries, sliced_head(a.sliced_q, tile.head, a.pos, WIDE), tile.first, SLICE_ROWS, a.pos);
  if (block * SLICE_COLUMNS < tile.until) copy_sliced<WIDE>(keys, of_keys, block * SLICE_COLUMNS, SLICE_COLUMNS, a.key_pos);
  COPIES_END();
  if (block * SLICE_COLUMNS < tile.until) copy_turned<WIDE>(values, turned_block(a.sliced_v, tile.kv, tile.blocks, block, WIDE));
  COPIES_END();
  for (; block * SLICE_COLUMNS < tile.until; ++block) {
    const int begin = block * SLICE_COLUMNS;
    const bool more = begin + SLICE_COLUMNS < tile.until;
    key_scales[THREAD] = scale_of(a.sliced_k, tile.kv, a.key_pos, begin + THREAD);
    value_scales[THREAD] = scale_of(a.sliced_v, tile.kv, a.key_pos, begin + THREAD);
    COPIES_WAIT(1);
    BARRIER();
    float s[COLUMN_TILES][4];
    float top[2] = {m[0], m[1]};
#pragma unroll
    for (int chunk = 0; chunk < COLUMN_TILES / 4; ++chunk) {
      float scores[4][4];
      sliced_scores<WIDE, false>(scores, queries, keys + chunk * 32 * Tile::ROW, q_scale, key_scales + chunk * 32);
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int n = chunk * 4 + i / 4, r = i % 4;
        float t;
        s[n][r] = capped_score(a, scores[i / 4][r], t);
        if (sees(a, b, reach[r / 2], begin + column_of(n, r)) && s[n][r] > top[r / 2]) top[r / 2] = s[n][r];
      }
    }
    float c[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
#pragma unroll
      for (int d = 1; d <= 2; d *= 2) {
        const float other = f32_of(SHUFFLE_XOR32(bits32(top[row]), d));
        top[row] = other > top[row] ? other : top[row];
      }
      c[row] = exp2_block(m[row], top[row], a.kappa);
      m[row] = top[row];
      if (lane % 4 == 0) factors[own + 8 * row] = c[row];
    }
#pragma unroll
    for (int i = 0; i < 4 * COLUMN_TILES; ++i) {
      const int n = i / 4, r = i % 4, column = column_of(n, r);
      const bool seen = sees(a, b, reach[r / 2], begin + column);
      const float p = seen ? exp2_below(s[n][r], top[r / 2], a.kappa) : 0.0f;
      weights[(own + r / 2 * 8) * P_ROW + column] = p;
      s[n][r] = seen ? p * value_scales[column] : 0.0f;
    }
    BARRIER();
    if (more) copy_sliced<WIDE>(keys, of_keys, begin + SLICE_COLUMNS, SLICE_COLUMNS, a.key_pos);
    COPIES_END();
    if (lane < 16) {
      const int row = THREAD / 32 * 16 + lane;
      l = l * factors[row];
      for (int j = 0; j < SLICE_COLUMNS; ++j) l = l + weights[row * P_ROW + j];
    }
    CutWeights w;
    cut_weights(s, w);
    COPIES_WAIT(1);
    BARRIER();
    add_turned<WIDE, true>(acc, w, values, c);
    BARRIER();
    if (more) copy_turned<WIDE>(values, turned_block(a.sliced_v, tile.kv, tile.blocks, block + 1, WIDE));
    COPIES_END();
  }
  COPIES_WAIT(0);
  BARRIER();
  if (lane < 16) factors[THREAD / 32 * 16 + lane] = l == 0.0f ? 0.0f : 1.0f / l;  // a row without keys gives +0
  BARRIER();
  const float r[2] = {factors[own], factors[own + 8]};
  if (lane % 4 == 0)
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const i64 i = first + 8 * row;
      if (i >= a.pos) continue;
      AT(float, a.m.at)[place_of(a.m, b, h, i)] = m[row] + 0.0f;
      AT(float, a.r.at)[place_of(a.r, b, h, i)] = r[row];
    }
  store_sums<WIDE, true>(a.out, b, h, first, a.pos, a.head_dim, acc, r);
}
