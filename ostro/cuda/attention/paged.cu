#include "attention/masks.cuh"
#include "attention/rows.cuh"
#include "attention/slices.cuh"
// A cache of keys and values in pages of 128 positions (N9, "Pages"). A block of 128 threads takes one row of one query head:
// thread j makes the score of the j-th key of a page, then each thread adds the page to its elements of head_dim. Pages of which
// the row sees no key are not read, and neither are such slots of other pages.

// The page of the pool, its first key that the row sees, and how many keys it has up to the row's position.
struct PagedKeys {
  i64 number;
  int first, count;
};
DEVICE PagedKeys keys_of_page(const PagedArgs& a, i64 row, i64 position, i64 first_key, i64 page) {
  const i64 begin = page * PIECE, left = position + 1 - begin;
  return {(i64)AT(const i32, a.table)[row * a.table_row + page * a.table_entry], first_key > begin ? (int)(first_key - begin) : 0,
          (int)(left < PIECE ? left : PIECE)};
}

DEVICE i64 row_place(const RowPlace& p, const PagedArgs& a, i64 row, i64 h) {
  return row * p.row + h / a.group * p.kv_head + h % a.group * p.group;
}
DEVICE i64 pool_place(const PoolPlace& p, const PagedArgs& a, i64 number, i64 h) {
  return number * p.page + h / a.group * p.kv_head;
}

// The first key that a row at this position sees.
DEVICE i64 first_seen(const PagedArgs& a, i64 position) {
  return a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
}

// What a row begins with: its maximum, and the sum of exponentials.
DEVICE float paged_maximum(const PagedArgs& a, i64 h) {
  if (a.sink.at == 0) return -1e30f;
  const float sink = AT(const float, a.sink.at)[row_place(a.sink, a, 0, h)];
  return a.soft_cap > 0 ? sink : sink / a.scale;
}

DEVICE float capped(const PagedArgs& a, float s) {
  return a.soft_cap > 0 ? a.soft_cap * tanh32((s * a.scale) / a.soft_cap) : s;
}

// The largest of m and the scores that the row sees.
DEVICE float largest_seen(float m, const float* score, const PagedKeys& keys) {
  for (int j = keys.first; j < keys.count; ++j)
    if (score[j] > m) m = score[j];
  return m;
}

// Writes the row: the sums times 1 / l, or +0 for padding.
DEVICE void end_row(const PagedArgs& a, i64 row, i64 h, const float* acc, float l) {
  const float r = l == 0.0f ? 0.0f : 1.0f / l;
  const i64 to = row_place(a.out, a, row, h);
  for (int n = 0; THREAD + n * PIECE < a.value_dim; ++n)
    store_float(a.out.at, a.type, to + (THREAD + n * PIECE) * a.out.dim, (acc[n] + 0.0f) * r);
}

BLOCK_KERNEL(paged_attention, PagedArgs) {
  SHARED(float, score, PIECE);
  const i64 row = BLOCK_X, h = BLOCK_Y, position = (i64)AT(const i32, a.position)[row * a.position_row];
  const i64 first_key = first_seen(a, position);
  const i64 q_at = row_place(a.q, a, row, h), width = a.key_dim > a.value_dim ? a.key_dim : a.value_dim;
  const bool narrow = a.type == TYPE_BF16;
  float m = paged_maximum(a, h), l = a.sink.at != 0 && position >= 0 ? 1.0f : 0.0f;
  float acc[MOST_DIMS];
  for (int n = 0; n < MOST_DIMS; ++n) acc[n] = 0;
  for (i64 page = first_key / PIECE; position >= 0 && page <= position / PIECE; ++page) {
    const PagedKeys keys = keys_of_page(a, row, position, first_key, page);
    const bool seen = THREAD >= keys.first && THREAD < keys.count;
    if (seen) {
      const i64 k_at = pool_place(a.keys, a, keys.number, h) + THREAD * a.keys.slot;
      Chain c = {0, 0, 0, 0};
      for (i64 d = 0; d < width; ++d)  // +0 behind the narrower of keys and values
        chain_add(c, narrow, d < a.key_dim ? load_float(a.q.at, a.type, q_at + d * a.q.dim) : 0.0f,
                  d < a.key_dim ? load_float(a.keys.at, a.type, k_at + d * a.keys.dim) : 0.0f);
      score[THREAD] = capped(a, chain_end(c, narrow));
    }
    BARRIER();
    const float top = largest_seen(m, score, keys);
    BARRIER();
    if (THREAD < keys.count) score[THREAD] = seen ? exp2_block(score[THREAD], top, a.kappa) : 0.0f;
    BARRIER();
    const float c = exp2_block(m, top, a.kappa);
    l = l * c;
    for (int j = 0; j < keys.count; ++j) l = l + score[j];
    for (int n = 0; THREAD + n * PIECE < a.value_dim; ++n) {
      const i64 v_at = pool_place(a.values, a, keys.number, h) + (THREAD + n * PIECE) * a.values.dim;
      Chain x = {acc[n] * c, 0, 0, 0};
      for (int j = 0; j < keys.count; ++j)
        chain_add(x, narrow, narrow ? round_bf16(score[j]) : score[j],
                  j >= keys.first ? load_float(a.values.at, a.type, v_at + j * a.values.slot) : 0.0f);
      acc[n] = chain_end(x, narrow);
    }
    m = top;
    BARRIER();
  }
  end_row(a, row, h, acc, l);
}

// The scale of a row of a pool: thread j looks through all of it.
DEVICE SliceCut cut_of_slot(const PagedArgs& a, const PoolPlace& pool, i64 at, i64 dim) {
  u32 largest = 0;
  for (i64 d = 0; d < dim; ++d) largest = larger_magnitude(largest, load_float(pool.at, a.type, at + d * pool.dim));
  return slice_cut(largest);
}

// The same by products of integers (N21). Slices are cut where they are read.
BLOCK_KERNEL(paged_attention_sliced, PagedArgs) {
  SHARED(float, score, PIECE);
  SHARED(float, v_up, PIECE);
  SHARED(i32, high, PIECE);
  SHARED(i32, low, PIECE);
  SHARED(u32, room, WARPS);
  const i64 row = BLOCK_X, h = BLOCK_Y, position = (i64)AT(const i32, a.position)[row * a.position_row];
  const i64 first_key = first_seen(a, position), q_at = row_place(a.q, a, row, h);
  u32 largest = 0;
  for (i64 d = THREAD; d < a.key_dim; d += PIECE)
    largest = larger_magnitude(largest, load_float(a.q.at, a.type, q_at + d * a.q.dim));
  const SliceCut q_cut = slice_cut(largest_of_block(largest, room));
  float m = paged_maximum(a, h), l = a.sink.at != 0 && position >= 0 ? 1.0f : 0.0f;
  float acc[MOST_DIMS];
  for (int n = 0; n < MOST_DIMS; ++n) acc[n] = 0;
  for (i64 page = first_key / PIECE; position >= 0 && page <= position / PIECE; ++page) {
    const PagedKeys keys = keys_of_page(a, row, position, first_key, page);
    const bool seen = THREAD >= keys.first && THREAD < keys.count;
    SliceCut v_cut = {0.0f, 0.0f};
    if (seen) {
      const i64 k_at = pool_place(a.keys, a, keys.number, h) + THREAD * a.keys.slot;
      const SliceCut k_cut = cut_of_slot(a, a.keys, k_at, a.key_dim);
      i32 both_high = 0, mixed = 0;
      for (i64 d = 0; d < a.key_dim; ++d) {
        const Slices k = slices_of(load_float(a.keys.at, a.type, k_at + d * a.keys.dim), k_cut);
        const Slices q = slices_of(load_float(a.q.at, a.type, q_at + d * a.q.dim), q_cut);
        both_high += k.high * q.high;
        mixed += k.high * q.low + k.low * q.high;
      }
      score[THREAD] = capped(a, add_slices(0.0f, both_high, mixed, k_cut.scale, q_cut.scale));
      v_cut = cut_of_slot(a, a.values, pool_place(a.values, a, keys.number, h) + THREAD * a.values.slot, a.value_dim);
    }
    v_up[THREAD] = v_cut.up;
    BARRIER();
    const float top = largest_seen(m, score, keys);
    BARRIER();
    const float p = seen ? exp2_block(score[THREAD], top, a.kappa) : 0.0f;
    score[THREAD] = p;
    const float w_scale = share_slices(seen ? p * v_cut.scale : 0.0f, high, low, room);
    const float c = exp2_block(m, top, a.kappa);
    l = l * c;
    for (int j = 0; j < keys.count; ++j) l = l + score[j];
    for (int n = 0; THREAD + n * PIECE < a.value_dim; ++n) {
      const i64 v_at = pool_place(a.values, a, keys.number, h) + (THREAD + n * PIECE) * a.values.dim;
      i32 sum = 0, mixed = 0;
      for (int j = keys.first; j < keys.count; ++j) {
        const Slices v = slices_of(load_float(a.values.at, a.type, v_at + j * a.values.slot), {0.0f, v_up[j]});
        sum += v.high * high[j];
        mixed += v.high * low[j] + v.low * high[j];
      }
      acc[n] = add_slices(acc[n] * c, sum, mixed, 1.0f, w_scale);
    }
    m = top;
    BARRIER();
  }
  end_row(a, row, h, acc, l);
}

// One thread an element of the rows.
KERNEL(paged_write, PagedWriteArgs) {
  const i64 i = global_thread();
  if (i >= a.rows * a.width) return;
  const i64 row = i / a.width, place = (i64)AT(const i32, a.place)[row];
  if (place < 0) return;
  const i64 from = row * a.row_stride + offset_in(a.rest_in_rows, i % a.width);
  const i64 to = place / PIECE * a.page_stride + place % PIECE * a.slot_stride + offset_in(a.rest_in_pool, i % a.width);
  if (a.element_bytes == 2)
    AT(u16, a.to)[to] = AT(const u16, a.from)[from];
  else
    AT(u32, a.to)[to] = AT(const u32, a.from)[from];
}
