// What all kernels of attention have in common (N9): places of elements, masks, and the maximum that a row begins with.

DEVICE i64 place_of(const AttentionPlace& p, i64 b, i64 h, i64 i) {
  return (p.batch != 0 ? AT(const i64, p.batch)[b] : 0) + (p.head != 0 ? AT(const i64, p.head)[h] : 0) + i * p.pos;
}
DEVICE float attention_element(const AttentionPlace& p, i64 at, i64 d) { return load_float(p.at, p.type, at + d * p.dim); }
DEVICE i64 attention_integer(const AttentionPlace& p, i64 at) {
  return p.type == TYPE_I64 ? AT(const i64, p.at)[at] : p.type == TYPE_BOOL ? (i64)AT(const u8, p.at)[at] : (i64)AT(const i32, p.at)[at];
}

DEVICE i64 origin_of(const AttentionArgs& a, i64 b) { return attention_integer(a.origin, place_of(a.origin, b, 0, 0)); }

DEVICE bool attends(const AttentionArgs& a, i64 b, i64 origin, i64 row, i64 key) {
  const i64 p = origin + row;
  if (a.key_limit.at != 0 && key >= attention_integer(a.key_limit, place_of(a.key_limit, b, 0, 0))) return false;
  if (a.causal && key > p && (a.prefix.at == 0 || key >= attention_integer(a.prefix, place_of(a.prefix, b, 0, 0)))) return false;
  if (a.window > 0 && key <= p - a.window) return false;
  if (a.query_segments.at != 0 && attention_integer(a.query_segments, place_of(a.query_segments, b, 0, row)) !=
                                      attention_integer(a.key_segments, place_of(a.key_segments, b, 0, key)))
    return false;
  return a.visible.at == 0 || attention_integer(a.visible, place_of(a.visible, b, 0, row) + key * a.visible.dim) != 0;
}

DEVICE float first_maximum(const AttentionArgs& a, i64 h) {
  if (a.sink.at == 0) return -1e30f;
  const float sink = AT(const float, a.sink.at)[place_of(a.sink, 0, h, 0)];
  return a.soft_cap > 0 ? sink : sink / a.scale;
}
