// What kernels by tiles have in common, whether their products are of floats (N9) or of integers (N21): the keys of a row, what gradients need of it, and exponentials.

// The keys that a query row attends to: [begin, end), and those of its segment alone. Both ends grow with the row; there is
// no key where begin >= end.
struct RowKeys {
  int begin, end;
  i64 segment;
};
DEVICE RowKeys row_keys(const AttentionArgs& a, i64 b, i64 origin, i64 row) {
  if (row < 0 || row >= a.pos) return {0, 0, 0};
  const i64 p = origin + row;
  i64 end = a.key_pos;
  if (a.causal) {
    i64 open = p + 1;
    if (a.prefix.at != 0) {
      const i64 prefix = attention_integer(a.prefix, place_of(a.prefix, b, 0, 0));
      open = prefix > open ? prefix : open;
    }
    end = open < end ? open : end;
  }
  if (a.key_limit.at != 0) {
    const i64 limit = attention_integer(a.key_limit, place_of(a.key_limit, b, 0, 0));
    end = limit < end ? limit : end;
  }
  i64 begin = a.window > 0 ? p - a.window + 1 : 0;
  begin = begin < 0 ? 0 : begin > a.key_pos ? a.key_pos : begin;
  return {(int)begin, (int)end,
          a.query_segments.at != 0 ? attention_integer(a.query_segments, place_of(a.query_segments, b, 0, row)) : 0};
}
DEVICE bool in_segment(const AttentionArgs& a, i64 b, i64 segment, i64 key) {
  return a.query_segments.at == 0 || attention_integer(a.key_segments, place_of(a.key_segments, b, 0, key)) == segment;
}

// What a tile needs of its query rows: m, r and delta, and the keys that each attends to.
template <int ROWS>
struct Queries {
  i64 segment[ROWS];
  float m[ROWS], r[ROWS], delta[ROWS];
  int begin[ROWS], end[ROWS];
};
template <int ROWS>
DEVICE void queries_in(Queries<ROWS>& to, const AttentionArgs& a, i64 b, i64 h, i64 origin, i64 first, int t) {
  if (t >= ROWS) return;
  const i64 i = first + t;
  const bool inside = i >= 0 && i < a.pos;
  const RowKeys reach = row_keys(a, b, origin, i);
  to.m[t] = inside ? AT(const float, a.m.at)[place_of(a.m, b, h, i)] : 0.0f;
  to.r[t] = inside ? AT(const float, a.r.at)[place_of(a.r, b, h, i)] : 0.0f;
  to.delta[t] = inside ? AT(const float, a.delta.at)[(b * a.pos + i) * a.kv_heads * a.group + h] : 0.0f;
  to.begin[t] = reach.begin, to.end[t] = reach.end, to.segment[t] = reach.segment;
}

// exp2_block for x <= y: one scaling is exact, as the result is never tiny.
DEVICE float exp2_below(float x, float y, float kappa) {
  const float t = (x - y) * kappa, shifted = t + 0x1.8p23f, f = t - (shifted - 0x1.8p23f);
  const float scaled = f32_of(bits32(exp2_fraction(f)) + (bits32(shifted) << 23));
  return t >= -126.0f ? scaled : t < -126.0f ? 0.0f : t;  // the bits of a NaN must not be added to
}
