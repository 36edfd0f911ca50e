// Positions that other values say (N10).

// One thread an element of the result.
KERNEL(gather, GatherArgs) {
  const i64 i = global_thread();
  if (i >= a.count * a.width) return;
  const i64 row = AT(const i32, a.index)[i / a.width] - integer_of(a.origin);
  const bool inside = row >= 0 && row < a.rows;
  const i64 from =
      inside ? offset_in(a.index_in_table, i / a.width) + row * a.row_stride + offset_in(a.rest_in_table, i % a.width) : 0;
  if (a.element_bytes == 1)
    AT(u8, a.to)[i] = inside ? AT(const u8, a.table)[from] : (u8)0;
  else if (a.element_bytes == 2)
    AT(u16, a.to)[i] = inside ? AT(const u16, a.table)[from] : (u16)0;
  else if (a.element_bytes == 4)
    AT(u32, a.to)[i] = inside ? AT(const u32, a.table)[from] : 0u;
  else
    AT(u64, a.to)[i] = inside ? AT(const u64, a.table)[from] : (u64)0;
}

// One leaf: one thread a column, which goes through the sources in their order and adds each to its row.
KERNEL(scatter_columns, ScatterArgs) {
  const i64 i = global_thread();
  if (i >= a.kept) return;
  const i64 origin = integer_of(a.origin), to = offset_in(a.kept_in_to, i);
  const i64 update = offset_in(a.kept_in_update, i), index = offset_in(a.kept_in_index, i);
  float* const out = AT(float, a.to) + to;
  for (i64 row = 0; row < a.rows; ++row) out[row * a.row_stride] = 0;
  for (i64 r = 0; r < a.sources; ++r) {
    const i64 row = AT(const i32, a.index)[AT(const i64, a.source_in_index)[r] + index] - origin;
    if (row < 0 || row >= a.rows) continue;
    float& sum = out[row * a.row_stride];
    sum = sum + load_float(a.update, a.update_type, AT(const i64, a.source_in_update)[r] + update);
  }
}

// Several leaves: one thread an element of the result, which looks at every source.
KERNEL(scatter_leaves, ScatterArgs) {
  const i64 i = global_thread();
  if (i >= a.kept * a.rows) return;
  const i64 k = i / a.rows, row = i % a.rows, origin = integer_of(a.origin);
  const i64 update = offset_in(a.kept_in_update, k), index = offset_in(a.kept_in_index, k);
  float leaf[MOST_LEAVES];
  i64 r = 0;
  for (i64 s = 0; s < a.segments; ++s) {
    float sum = 0;
    for (; r < AT(const i64, a.segment_ends)[s]; ++r)
      if (AT(const i32, a.index)[AT(const i64, a.source_in_index)[r] + index] - origin == row)
        sum = sum + load_float(a.update, a.update_type, AT(const i64, a.source_in_update)[r] + update);
    leaf[s] = sum;
  }
  AT(float, a.to)[offset_in(a.kept_in_to, k) + row * a.row_stride] = join_leaves(leaf, a.segments, a.levels, a.counts);
}

// One thread an element: its place is the number of those before it.
template <typename T>
struct Sort {
  DEVICE void run(const SortArgs& a, i64 line, i64 i) {
    const i64 first = offset_in(a.from_axes, line);
    const T x = Element<T>::load(a.from, a.type, first + i * a.from_stride);
    i64 place = 0;
    for (i64 j = 0; j < a.n; ++j) {
      const T y = Element<T>::load(a.from, a.type, first + j * a.from_stride);
      const bool before = a.descending ? is_below(x, y) : is_below(y, x);
      const bool after = a.descending ? is_below(y, x) : is_below(x, y);
      if (before || (!after && j < i)) ++place;
    }
    if (place >= a.keep) return;
    const i64 from = first + i * a.from_stride, to = offset_in(a.to_axes, line) + place * a.to_stride;
    AT(i32, a.indices)[to] = (i32)i;
    if (a.type == TYPE_BF16)
      AT(u16, a.to)[to] = AT(const u16, a.from)[from];
    else
      AT(T, a.to)[to] = AT(const T, a.from)[from];
  }
};

KERNEL(sort_lines, SortArgs) {
  const i64 t = global_thread();
  if (t >= a.lines * a.n) return;
  const i64 line = t / a.n, i = t % a.n;
  with_type<Sort>(a.type, a, line, i);
}
