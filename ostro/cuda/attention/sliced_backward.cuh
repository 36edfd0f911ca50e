// The gradient of attention on integers by tiles: for dq of 64 queries, for dk and for dv of 64 keys. Scores are made again, in each of the three.

// p of a score of a query row, and the cap's tanh.
template <int ROWS>
DEVICE float sliced_p(const AttentionArgs& a, const Queries<ROWS>& of, int row, float score, float& t) {
  return exp2_below(capped_score(a, score, t), of.m[row], a.kappa) * of.r[row];
}

// dq of 64 query rows of one head.
template <int WIDE>
DEVICE void sliced_dq(const AttentionArgs& a) {
  using Tile = SlicedTile<WIDE>;
  DYNAMIC_SHARED(u8, queries);                    // 64 rows
  u8* const douts = queries + Tile::ROWS_BYTES;   // 64 rows
  u8* const keys = douts + Tile::ROWS_BYTES;      // 128 rows
  u8* const values = keys + Tile::COLUMNS_BYTES;  // 128 rows
  u8* const turned = values + Tile::COLUMNS_BYTES;
  float* const key_scales = (float*)(turned + Tile::TURNED_BYTES);
  float* const value_scales = key_scales + SLICE_COLUMNS;
  Queries<SLICE_ROWS>& of = *(Queries<SLICE_ROWS>*)(value_scales + SLICE_COLUMNS);
  const QueryTile tile = query_tile(a);
  const int b = tile.b, h = tile.h, first = tile.first + tile.own;
  const float q_scale[2] = {scale_of(a.sliced_q, tile.head, a.pos, first), scale_of(a.sliced_q, tile.head, a.pos, first + 8)};
  const float do_scale[2] = {scale_of(a.sliced_do, tile.head, a.pos, first), scale_of(a.sliced_do, tile.head, a.pos, first + 8)};
  queries_in(of, a, b, h, tile.origin, tile.first, THREAD);
  float dq[WIDE / 8][4];
#pragma unroll
  for (int i = 0; i < WIDE / 2; ++i) dq[i / 4][i % 4] = 0;
  copy_sliced<WIDE>(queries, sliced_head(a.sliced_q, tile.head, a.pos, WIDE), tile.first, SLICE_ROWS, a.pos);
  copy_sliced<WIDE>(douts, sliced_head(a.sliced_do, tile.head, a.pos, WIDE), tile.first, SLICE_ROWS, a.pos);
  for (int block = tile.block; block * SLICE_COLUMNS < tile.until; ++block) {
    const int begin = block * SLICE_COLUMNS;
    copy_sliced<WIDE>(keys, sliced_head(a.sliced_k, tile.kv, a.key_pos, WIDE), begin, SLICE_COLUMNS, a.key_pos);
    copy_sliced<WIDE>(values, sliced_head(a.sliced_v, tile.kv, a.key_pos, WIDE), begin, SLICE_COLUMNS, a.key_pos);
    COPIES_END();
    copy_turned<WIDE>(turned, turned_block(a.sliced_k, tile.kv, tile.blocks, block, WIDE));
    COPIES_END();
    key_scales[THREAD] = scale_of(a.sliced_k, tile.kv, a.key_pos, begin + THREAD);
    value_scales[THREAD] = scale_of(a.sliced_v, tile.kv, a.key_pos, begin + THREAD);
    COPIES_WAIT(1);
    BARRIER();
    float weights[COLUMN_TILES][4];
#pragma unroll
    for (int chunk = 0; chunk < COLUMN_TILES / 4; ++chunk) {
      float s[4][4], dp[4][4];
      sliced_scores<WIDE, false>(s, queries, keys + chunk * 32 * Tile::ROW, q_scale, key_scales + chunk * 32);
      sliced_scores<WIDE, false>(dp, douts, values + chunk * 32 * Tile::ROW, do_scale, value_scales + chunk * 32);
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int n = i / 4, r = i % 4, row = tile.own + r / 2 * 8, column = column_of(chunk * 4 + n, r);
        float t;
        const float p = sliced_p(a, of, row, s[n][r], t), ds = slope_with(a, p, dp[n][r], of.delta[row], t);
        weights[chunk * 4 + n][r] = sees(a, b, reach_of(of, row), begin + column) ? ds * key_scales[column] : 0.0f;
      }
    }
    CutWeights cut;
    cut_weights(weights, cut);
    COPIES_WAIT(0);
    BARRIER();
    const float factor[2] = {1.0f, 1.0f};
    add_turned<WIDE, true>(dq, cut, turned, factor);
    BARRIER();
  }
  COPIES_WAIT(0);
  const float scale[2] = {a.scale, a.scale};
  store_sums<WIDE, false>(a.dq, b, h, first, a.pos, a.head_dim, dq, scale);
}

// dv, or with of_k dk, of 64 keys of one head of keys. Blocks of queries are by absolute position: what lies before row 0 is masked.
template <int WIDE, bool of_k>
DEVICE void sliced_dkv(const AttentionArgs& a) {
  using Tile = SlicedTile<WIDE>;
  enum { OPERANDS = of_k ? 2 : 1 };
  DYNAMIC_SHARED(u8, keys);                                       // 64 rows
  u8* const values = keys + Tile::ROWS_BYTES;                     // 64 rows, for dk
  u8* const queries = keys + OPERANDS * Tile::ROWS_BYTES;         // 128 rows
  u8* const douts = queries + Tile::COLUMNS_BYTES;                // 128 rows, for dk
  u8* const turned = queries + OPERANDS * Tile::COLUMNS_BYTES;    // of queries for dk, else of douts
  float* const q_scales = (float*)(turned + Tile::TURNED_BYTES);
  float* const do_scales = q_scales + SLICE_COLUMNS;
  Queries<SLICE_COLUMNS>& of = *(Queries<SLICE_COLUMNS>*)(do_scales + SLICE_COLUMNS);
  const i64 kv = BLOCK_X, b = BLOCK_Z, origin = origin_of(a, b), kv_head = b * a.kv_heads + kv, any = kv * a.group, first_key = BLOCK_Y * SLICE_ROWS;
  const i64 place = (origin % SLICE_COLUMNS + SLICE_COLUMNS) % SLICE_COLUMNS, blocks = (a.pos + SLICE_COLUMNS - 1) / SLICE_COLUMNS + 1;
  const i64 first = first_key + THREAD / 32 * 16 + THREAD % 32 / 4;  // the thread's first key; the other is 8 further
  const float k_scale[2] = {scale_of(a.sliced_k, kv_head, a.key_pos, first), scale_of(a.sliced_k, kv_head, a.key_pos, first + 8)};
  const float v_scale[2] = {scale_of(a.sliced_v, kv_head, a.key_pos, first), scale_of(a.sliced_v, kv_head, a.key_pos, first + 8)};
  float sums[WIDE / 8][4];
#pragma unroll
  for (int i = 0; i < WIDE / 2; ++i) sums[i / 4][i % 4] = 0;
  // The queries that may attend to one of the keys.
  i64 from = 0, until = a.pos;
  if (a.causal && (a.prefix.at == 0 || first_key >= attention_integer(a.prefix, place_of(a.prefix, b, 0, 0)))) from = first_key - origin;
  if (a.window > 0 && first_key + SLICE_ROWS - 1 + a.window - origin < until) until = first_key + SLICE_ROWS - 1 + a.window - origin;
  if (a.key_limit.at != 0 && first_key >= attention_integer(a.key_limit, place_of(a.key_limit, b, 0, 0))) until = 0;
  const i64 first_block = from > 0 ? (from + place) / SLICE_COLUMNS : 0;
  copy_sliced<WIDE>(keys, sliced_head(a.sliced_k, kv_head, a.key_pos, WIDE), first_key, SLICE_ROWS, a.key_pos);
  if (of_k) copy_sliced<WIDE>(values, sliced_head(a.sliced_v, kv_head, a.key_pos, WIDE), first_key, SLICE_ROWS, a.key_pos);
  for (i64 g = 0; g < a.group; ++g) {
    const i64 h = any + g, head = b * a.kv_heads * a.group + h;
    for (i64 block = first_block; block * SLICE_COLUMNS - place < until; ++block) {
      const i64 begin = block * SLICE_COLUMNS - place;
      copy_sliced<WIDE>(queries, sliced_head(a.sliced_q, head, a.pos, WIDE), begin, SLICE_COLUMNS, a.pos);
      if (of_k) copy_sliced<WIDE>(douts, sliced_head(a.sliced_do, head, a.pos, WIDE), begin, SLICE_COLUMNS, a.pos);
      COPIES_END();
      copy_turned<WIDE>(turned, turned_block(of_k ? a.sliced_q : a.sliced_do, head, blocks, block, WIDE));
      COPIES_END();
      queries_in(of, a, b, h, origin, begin, THREAD);
      q_scales[THREAD] = scale_of(a.sliced_q, head, a.pos, begin + THREAD);
      do_scales[THREAD] = scale_of(a.sliced_do, head, a.pos, begin + THREAD);
      COPIES_WAIT(1);
      BARRIER();
      float weights[COLUMN_TILES][4];
#pragma unroll
      for (int chunk = 0; chunk < COLUMN_TILES / 4; ++chunk) {
        float s[4][4], dp[4][4];
        sliced_scores<WIDE, true>(s, keys, queries + chunk * 32 * Tile::ROW, k_scale, q_scales + chunk * 32);
        if (of_k) sliced_scores<WIDE, true>(dp, values, douts + chunk * 32 * Tile::ROW, v_scale, do_scales + chunk * 32);
#pragma unroll
        for (int i = 0; i < 16; ++i) {
          const int n = i / 4, r = i % 4, column = column_of(chunk * 4 + n, r);
          float t;
          const float p = sliced_p(a, of, column, s[n][r], t);
          const float w = of_k ? slope_with(a, p, dp[n][r], of.delta[column], t) * q_scales[column] : p * do_scales[column];
          weights[chunk * 4 + n][r] = sees(a, b, reach_of(of, column), first + r / 2 * 8) ? w : 0.0f;
        }
      }
      CutWeights cut;
      cut_weights(weights, cut);
      COPIES_WAIT(0);
      BARRIER();
      const float factor[2] = {1.0f, 1.0f};
      add_turned<WIDE, false>(sums, cut, turned, factor);
      BARRIER();
    }
  }
  COPIES_WAIT(0);
  const float times = of_k && !a.partial ? a.scale : 1.0f;
  const float scale[2] = {times, times};
  store_sums<WIDE, false>(of_k ? a.dk : a.dv, b, any, first, a.key_pos, a.head_dim, sums, scale);
}
