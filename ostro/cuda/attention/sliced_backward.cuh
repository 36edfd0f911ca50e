// The gradient of attention on integers by tiles: for dq of 64 queries, for dk and for dv of 64 keys. Scores are made again, in each of the three.

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
  const i64 h = BLOCK_X, b = BLOCK_Z, origin = origin_of(a, b), head = b * a.kv_heads * a.group + h, kv = b * a.kv_heads + h / a.group;
  const i64 first = ((a.pos + SLICE_ROWS - 1) / SLICE_ROWS - 1 - BLOCK_Y) * SLICE_ROWS;  // the longest rows come first
  const i64 last = first + SLICE_ROWS < a.pos ? first + SLICE_ROWS - 1 : a.pos - 1;
  const int lane = THREAD % 32, own = THREAD / 32 * 16 + lane / 4;
  const i64 blocks = (a.key_pos + SLICE_COLUMNS - 1) / SLICE_COLUMNS, until = row_keys(a, b, origin, last).end;
  RowKeys reach[2];
  float q_scale[2], do_scale[2], m[2], r_of[2], delta[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const i64 i = first + own + 8 * row;
    reach[row] = row_keys(a, b, origin, i);
    q_scale[row] = scale_of(a.sliced_q, head, a.pos, i);
    do_scale[row] = scale_of(a.sliced_do, head, a.pos, i);
    m[row] = i < a.pos ? AT(const float, a.m.at)[place_of(a.m, b, h, i)] : 0.0f;
    r_of[row] = i < a.pos ? AT(const float, a.r.at)[place_of(a.r, b, h, i)] : 0.0f;
    delta[row] = i < a.pos ? AT(const float, a.delta.at)[(b * a.pos + i) * a.kv_heads * a.group + h] : 0.0f;
  }
  float dq[WIDE / 8][4];
#pragma unroll
  for (int i = 0; i < WIDE / 2; ++i) dq[i / 4][i % 4] = 0;
  copy_sliced<WIDE>(queries, sliced_head(a.sliced_q, head, a.pos, WIDE), first, SLICE_ROWS, a.pos);
  copy_sliced<WIDE>(douts, sliced_head(a.sliced_do, head, a.pos, WIDE), first, SLICE_ROWS, a.pos);
  for (i64 block = row_keys(a, b, origin, first).begin / SLICE_COLUMNS; block * SLICE_COLUMNS < until; ++block) {
    const i64 begin = block * SLICE_COLUMNS;
    copy_sliced<WIDE>(keys, sliced_head(a.sliced_k, kv, a.key_pos, WIDE), begin, SLICE_COLUMNS, a.key_pos);
    copy_sliced<WIDE>(values, sliced_head(a.sliced_v, kv, a.key_pos, WIDE), begin, SLICE_COLUMNS, a.key_pos);
    COPIES_END();
    copy_turned<WIDE>(turned, turned_block(a.sliced_k, kv, blocks, block, WIDE));
    COPIES_END();
    key_scales[THREAD] = scale_of(a.sliced_k, kv, a.key_pos, begin + THREAD);
    value_scales[THREAD] = scale_of(a.sliced_v, kv, a.key_pos, begin + THREAD);
    COPIES_WAIT(1);
    BARRIER();
    float weights[COLUMN_TILES][4];
#pragma unroll
    for (int chunk = 0; chunk < COLUMN_TILES / 4; ++chunk) {
      i32 high[4][4], mixed[4][4];
      slice_products<WIDE>(queries, keys + chunk * 32 * Tile::ROW, high, mixed);
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int column = (chunk * 4 + i / 4) * 8 + lane % 4 * 2 + i % 2;
        weights[chunk * 4 + i / 4][i % 4] = add_slices(0.0f, high[i / 4][i % 4], mixed[i / 4][i % 4], key_scales[column], q_scale[i % 4 / 2]);
      }
      slice_products<WIDE>(douts, values + chunk * 32 * Tile::ROW, high, mixed);
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const int row = i % 4 / 2, column = (chunk * 4 + i / 4) * 8 + lane % 4 * 2 + i % 2;
        float& w = weights[chunk * 4 + i / 4][i % 4];
        const float dp = add_slices(0.0f, high[i / 4][i % 4], mixed[i / 4][i % 4], value_scales[column], do_scale[row]);
        float t;
        const float p = exp2_below(capped_score(a, w, t), m[row], a.kappa) * r_of[row];
        float ds = p * (dp - delta[row]);
        if (a.soft_cap > 0) ds = ds * (1.0f - t * t);
        w = sees(a, b, reach[row], begin + column) ? ds * key_scales[column] : 0.0f;
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
  store_sums<WIDE, false>(a.dq, b, h, first + own, a.pos, a.head_dim, dq, scale);
}

// What a block of queries needs of each: its scales, m, r and delta, and the keys that it attends to.
struct SlicedQueries {
  RowKeys reach[SLICE_COLUMNS];
  float q_scale[SLICE_COLUMNS], do_scale[SLICE_COLUMNS], m[SLICE_COLUMNS], r[SLICE_COLUMNS], delta[SLICE_COLUMNS];
};

// dv, or with of_k dk, of 64 keys of one head of keys. Blocks of queries are by absolute position: what lies before row 0 is masked.
template <int WIDE, bool of_k>
DEVICE void sliced_dkv(const AttentionArgs& a) {
  using Tile = SlicedTile<WIDE>;
  DYNAMIC_SHARED(u8, keys);                        // 64 rows
  u8* const values = keys + Tile::ROWS_BYTES;      // 64 rows
  u8* const queries = values + Tile::ROWS_BYTES;   // 128 rows
  u8* const douts = queries + Tile::COLUMNS_BYTES; // 128 rows
  u8* const turned = douts + Tile::COLUMNS_BYTES;  // of queries for dk, else of douts
  SlicedQueries& of = *(SlicedQueries*)(turned + Tile::TURNED_BYTES);
  const i64 kv = BLOCK_X, b = BLOCK_Z, origin = origin_of(a, b), kv_head = b * a.kv_heads + kv, any = kv * a.group, first_key = BLOCK_Y * SLICE_ROWS;
  const i64 place = (origin % SLICE_COLUMNS + SLICE_COLUMNS) % SLICE_COLUMNS, blocks = (a.pos + SLICE_COLUMNS - 1) / SLICE_COLUMNS + 1;
  const int lane = THREAD % 32, own = THREAD / 32 * 16 + lane / 4;
  const float k_scale[2] = {scale_of(a.sliced_k, kv_head, a.key_pos, first_key + own), scale_of(a.sliced_k, kv_head, a.key_pos, first_key + own + 8)};
  const float v_scale[2] = {scale_of(a.sliced_v, kv_head, a.key_pos, first_key + own), scale_of(a.sliced_v, kv_head, a.key_pos, first_key + own + 8)};
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
      const i64 i = begin + THREAD;
      const bool inside = i >= 0 && i < a.pos;
      of.reach[THREAD] = row_keys(a, b, origin, i);
      of.q_scale[THREAD] = scale_of(a.sliced_q, head, a.pos, i);
      of.do_scale[THREAD] = scale_of(a.sliced_do, head, a.pos, i);
      of.m[THREAD] = inside ? AT(const float, a.m.at)[place_of(a.m, b, h, i)] : 0.0f;
      of.r[THREAD] = inside ? AT(const float, a.r.at)[place_of(a.r, b, h, i)] : 0.0f;
      of.delta[THREAD] = inside ? AT(const float, a.delta.at)[(b * a.pos + i) * a.kv_heads * a.group + h] : 0.0f;
      COPIES_WAIT(1);
      BARRIER();
      float weights[COLUMN_TILES][4];
#pragma unroll
      for (int chunk = 0; chunk < COLUMN_TILES / 4; ++chunk) {
        i32 high[4][4], mixed[4][4];
        slice_products<WIDE>(keys, queries + chunk * 32 * Tile::ROW, high, mixed);
#pragma unroll
        for (int e = 0; e < 16; ++e) {
          const int column = (chunk * 4 + e / 4) * 8 + lane % 4 * 2 + e % 2, row = e % 4 / 2;
          float& w = weights[chunk * 4 + e / 4][e % 4];
          w = add_slices(0.0f, high[e / 4][e % 4], mixed[e / 4][e % 4], k_scale[row], of.q_scale[column]);
          if (of_k) continue;
          float t;
          const float p = exp2_below(capped_score(a, w, t), of.m[column], a.kappa) * of.r[column];
          w = sees(a, b, of.reach[column], first_key + own + 8 * row) ? p * of.do_scale[column] : 0.0f;
        }
        if (!of_k) continue;
        slice_products<WIDE>(values, douts + chunk * 32 * Tile::ROW, high, mixed);
#pragma unroll
        for (int e = 0; e < 16; ++e) {
          const int column = (chunk * 4 + e / 4) * 8 + lane % 4 * 2 + e % 2, row = e % 4 / 2;
          float& w = weights[chunk * 4 + e / 4][e % 4];
          const float dp = add_slices(0.0f, high[e / 4][e % 4], mixed[e / 4][e % 4], v_scale[row], of.do_scale[column]);
          float t;
          const float p = exp2_below(capped_score(a, w, t), of.m[column], a.kappa) * of.r[column];
          float ds = p * (dp - of.delta[column]);
          if (a.soft_cap > 0) ds = ds * (1.0f - t * t);
          w = sees(a, b, of.reach[column], first_key + own + 8 * row) ? ds * of.q_scale[column] : 0.0f;
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
  store_sums<WIDE, false>(of_k ? a.dk : a.dv, b, any, first_key + own, a.key_pos, a.head_dim, sums, scale);
}
