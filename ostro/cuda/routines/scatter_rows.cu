// Sums of the sources of each row of a table (N10).

DEVICE int count_bits(u32 x) {
  int n = 0;
  for (; x != 0; x &= x - 1) ++n;
  return n;
}

// One leaf, an index for all columns: a block of 256 threads for each source. That of the first source of a row adds all
// sources of the row in their order, each thread in some of the columns; the others end. The result is zero before.
BLOCK_KERNEL(scatter_rows, ScatterArgs) {
  SHARED(u32, equal, 8);
  SHARED(i64, found, 256);
  const i64 own = BLOCK_X, origin = integer_of(a.origin);
  const i32* const index = AT(const i32, a.index);
  const i64* const place = AT(const i64, a.source_in_index);
  const i64 row = index[place[own]] - origin;
  if (row < 0 || row >= a.rows) return;
  float* const out = AT(float, a.to) + row * a.row_stride;
  for (i64 first = 0; first < a.sources; first += 256) {
    const i64 source = first + THREAD;
    const bool same = source < a.sources && index[place[source]] - origin == row;
    u32 bits = same ? 1u << THREAD % 32 : 0u;
    for (int d = 16; d >= 1; d /= 2) bits |= SHUFFLE_XOR32(bits, d);
    if (THREAD % 32 == 0) equal[THREAD / 32] = bits;
    BARRIER();
    int count = 0, before = 0, earliest = 256;
    for (int w = 7; w >= 0; --w) {
      const u32 word = equal[w];
      if (word != 0) earliest = w * 32 + count_bits((word & (0u - word)) - 1);
      if (w < THREAD / 32) before += count_bits(word);
      count += count_bits(word);
    }
    if (count != 0 && first + earliest < own) return;
    if (same) found[before + count_bits(bits & ((1u << THREAD % 32) - 1))] = AT(const i64, a.source_in_update)[source];
    BARRIER();
    for (i64 k = THREAD; count != 0 && k < a.kept; k += 256) {
      const i64 update = offset_in(a.kept_in_update, k), to = offset_in(a.kept_in_to, k);
      float sum = out[to];
      for (int s = 0; s < count; s += 8) {
        float x[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = load_float(a.update, a.update_type, found[s + i < count ? s + i : s] + update);
#pragma unroll
        for (int i = 0; i < 8; ++i)
          if (s + i < count) sum = sum + x[i];
      }
      out[to] = sum;
    }
    BARRIER();
  }
}
