// Attention on integers (N21) by tiles, on the integer units of tensor cores: a block of 128 threads takes 64 rows (of queries, or of keys for dk and
// dv), a warp 16 of them, and columns (keys, or queries) in blocks of 128. Thread t of a warp has outputs (t / 4 + r / 2 * 8, 8 n + t % 4 * 2 + r % 2) of
// its warp's 16 rows in register r of column tile n. Sums of integers have no order, so what a warp has of a block of weights is the left operand of
// the sum over it as it lies in the registers: bytes of a word are columns 8 n + 2 q, 8 n + 2 q + 1 and those 8 behind. Turned operands have the same order.

enum { SLICE_ROWS = 64, SLICE_COLUMNS = 128, SLICE_THREADS = 128, TURNED_ROW = 2 * SLICE_COLUMNS + 16, COLUMN_TILES = SLICE_COLUMNS / 8 };

// Rows of head_dim in shared memory: WIDE high slices, WIDE low ones, and 16 bytes by which neighbours lie in other banks.
template <int WIDE>
struct SlicedTile {
  enum { ROW = 2 * WIDE + 16, ROWS_BYTES = SLICE_ROWS * ROW, COLUMNS_BYTES = SLICE_COLUMNS * ROW, TURNED_BYTES = WIDE * TURNED_ROW };
};

// Begins to copy `count` rows from `first` on, of a head of `rows`; what there is not is 0.
template <int WIDE>
DEVICE void copy_sliced(u8* to, u64 head, i64 first, int count, i64 rows) {
  for (int u = THREAD; u < count * (WIDE / 8); u += SLICE_THREADS) {
    const int row = u / (WIDE / 8), at = u % (WIDE / 8) * 16;
    const bool inside = first + row >= 0 && first + row < rows;
    COPY16(to + row * SlicedTile<WIDE>::ROW + at, inside ? head + (u64)((first + row) * 2 * WIDE + at) : head, inside ? 16 : 0);
  }
}
// The same of a turned block.
template <int WIDE>
DEVICE void copy_turned(u8* to, u64 block) {
  for (int u = THREAD; u < WIDE * 16; u += SLICE_THREADS) COPY16(to + u / 16 * TURNED_ROW + u % 16 * 16, block + (u64)u * 16, 16);
}

DEVICE u32 word_at(const u8* p) { return *(const u32*)p; }

// The sums of products of the warp's 16 rows of x and 32 columns of y, those of high slices, and those of high with low ones.
template <int WIDE>
DEVICE void slice_products(const u8* x, const u8* y, i32 (&high)[4][4], i32 (&mixed)[4][4]) {
  enum { ROW = SlicedTile<WIDE>::ROW };
  const int lane = THREAD % 32;
  const u8 *const left = x + (THREAD / 32 * 16 + lane / 4) * ROW + lane % 4 * 4, *const right = y + lane / 4 * ROW + lane % 4 * 4;
#pragma unroll
  for (int i = 0; i < 16; ++i) high[i / 4][i % 4] = 0, mixed[i / 4][i % 4] = 0;
#pragma unroll
  for (int k = 0; k < WIDE; k += 32) {
    u32 of_x[2][4];
#pragma unroll
    for (int i = 0; i < 8; ++i) of_x[i / 4][i % 4] = word_at(left + k + i / 4 * WIDE + i % 2 * 8 * ROW + i % 4 / 2 * 16);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      u32 of_y[2][2];
#pragma unroll
      for (int i = 0; i < 4; ++i) of_y[i / 2][i % 2] = word_at(right + n * 8 * ROW + k + i / 2 * WIDE + i % 2 * 16);
      MMA_S8(high[n], of_x[0], of_y[0]);
      MMA_S8(mixed[n], of_x[0], of_y[1]);
      MMA_S8(mixed[n], of_x[1], of_y[0]);
    }
  }
}

// The column of register r of a column tile, for this thread.
DEVICE int column_of(int tile, int r) { return tile * 8 + THREAD % 4 * 2 + r % 2; }

// The products of the warp's 16 rows of x and 32 columns of y, with the scales of the thread's two rows and of the columns. rows_left: the rows are
// the left operand.
template <int WIDE, bool rows_left>
DEVICE void sliced_scores(float (&s)[4][4], const u8* x, const u8* y, const float (&row_scale)[2], const float* column_scale) {
  i32 high[4][4], mixed[4][4];
  slice_products<WIDE>(x, y, high, mixed);
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int n = i / 4, r = i % 4;
    const float of_row = row_scale[r / 2], of_column = column_scale[column_of(n, r)];
    s[n][r] = add_slices(0.0f, high[n][r], mixed[n][r], rows_left ? of_row : of_column, rows_left ? of_column : of_row);
  }
}

// The slices of this thread's weights: a word for each of 4 steps of 32 columns and each register of the left operand.
struct CutWeights {
  u32 high[4][4], low[4][4];
  float scale[2];  // of the thread's two rows
};
DEVICE u32 largest_of_quad(u32 x) {
#pragma unroll
  for (int d = 1; d <= 2; d *= 2) {
    const u32 other = SHUFFLE_XOR32(x, d);
    x = other > x ? other : x;
  }
  return x;
}
DEVICE void cut_weights(const float (&w)[COLUMN_TILES][4], CutWeights& to) {
  SliceCut cut[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    u32 largest = 0;
#pragma unroll
    for (int n = 0; n < COLUMN_TILES; ++n) largest = larger_magnitude(larger_magnitude(largest, w[n][2 * row]), w[n][2 * row + 1]);
    cut[row] = slice_cut(largest_of_quad(largest));
    to.scale[row] = cut[row].scale;
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int n = i / 4 * 4 + i % 4 / 2 * 2, row = i % 2;
    Slices s[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) s[e] = slices_of(w[n + e / 2][2 * row + e % 2], cut[row]);
    to.high[i / 4][i % 4] = BYTES4((u32)s[0].high, (u32)s[1].high, (u32)s[2].high, (u32)s[3].high);
    to.low[i / 4][i % 4] = BYTES4((u32)s[0].low, (u32)s[1].low, (u32)s[2].low, (u32)s[3].low);
  }
}

// Adds a block to the sums of the warp's rows, 8 numbers of head_dim at a time: those before are multiplied by `factor` first. `rows_left`: the turned
// rows are the left operand, else their weights are.
template <int WIDE, bool rows_left>
DEVICE void add_turned(float (&c)[WIDE / 8][4], const CutWeights& w, const u8* turned, const float (&factor)[2]) {
  const u8* const right = turned + THREAD % 32 / 4 * TURNED_ROW + THREAD % 4 * 4;
#pragma unroll
  for (int n = 0; n < WIDE / 8; ++n) {
    i32 high[4] = {0, 0, 0, 0}, mixed[4] = {0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      u32 of_rows[2][2];
#pragma unroll
      for (int i = 0; i < 4; ++i) of_rows[i / 2][i % 2] = word_at(right + n * 8 * TURNED_ROW + k * 32 + i / 2 * SLICE_COLUMNS + i % 2 * 16);
      MMA_S8(high, w.high[k], of_rows[0]);
      MMA_S8(mixed, w.low[k], of_rows[0]);
      MMA_S8(mixed, w.high[k], of_rows[1]);
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const float scale = w.scale[r / 2];
      c[n][r] = add_slices(c[n][r] * factor[r / 2], high[r], mixed[r], rows_left ? 1.0f : scale, rows_left ? scale : 1.0f);
    }
  }
}

// Places of slices: head h of example b has `rows` rows, and `blocks` turned blocks.
DEVICE u64 sliced_head(const SlicedPlace& x, i64 head, i64 rows, i64 wide) { return x.integers + (u64)(head * rows * 2 * wide); }
DEVICE u64 turned_block(const SlicedPlace& x, i64 head, i64 blocks, i64 block, i64 wide) {
  return x.turned + (u64)((head * blocks + block) * wide * 2 * SLICE_COLUMNS);
}
DEVICE float scale_of(const SlicedPlace& x, i64 head, i64 rows, i64 row) {
  return row >= 0 && row < rows ? AT(const float, x.scales)[head * rows + row] : 0.0f;
}
DEVICE bool sees(const AttentionArgs& a, i64 b, const RowKeys& reach, i64 key) {
  return key >= reach.begin && key < reach.end && in_segment(a, b, reach.segment, key);
}
template <int ROWS>
DEVICE RowKeys reach_of(const Queries<ROWS>& of, int row) { return {of.begin[row], of.end[row], of.segment[row]}; }

// The 64 query rows of a block of threads, and the blocks of keys from `block` on, before key `until`, that one of them attends to.
struct QueryTile {
  i64 origin;
  int h, b, head, kv, first, blocks, block, until;  // head, kv: among those of all examples; blocks: of a head of keys
  int own;                                          // the thread's first row; the other is 8 further
};
DEVICE QueryTile query_tile(const AttentionArgs& a) {
  const int h = (int)BLOCK_X, b = (int)BLOCK_Z, pos = (int)a.pos;
  const i64 origin = origin_of(a, b);
  const int first = ((pos + SLICE_ROWS - 1) / SLICE_ROWS - 1 - (int)BLOCK_Y) * SLICE_ROWS;  // the longest rows come first
  const int last = first + SLICE_ROWS < pos ? first + SLICE_ROWS - 1 : pos - 1;
  return {origin, h, b, b * (int)(a.kv_heads * a.group) + h, b * (int)a.kv_heads + h / (int)a.group, first,
          ((int)a.key_pos + SLICE_COLUMNS - 1) / SLICE_COLUMNS, row_keys(a, b, origin, first).begin / SLICE_COLUMNS,
          row_keys(a, b, origin, last).end, THREAD / 32 * 16 + THREAD % 32 / 4};
}

// Stores a thread's sums of rows m and m + 8: of the output (x + 0) * times, of gradients x * times + 0.
template <int WIDE, bool of_output>
DEVICE void store_sums(const AttentionPlace& to, i64 b, i64 h, i64 m, i64 rows, i64 head_dim, const float (&c)[WIDE / 8][4], const float (&times)[2]) {
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const i64 row = m + r / 2 * 8;
    if (row >= rows) continue;
    const i64 at = place_of(to, b, h, row);
#pragma unroll
    for (int n = 0; n < WIDE / 8; ++n) {
      const int d = n * 8 + THREAD % 4 * 2 + r % 2;
      if (d >= head_dim) continue;
      store_float(to.at, to.type, at + d * to.dim, of_output ? (c[n][r] + 0.0f) * times[r / 2] : c[n][r] * times[r / 2] + 0.0f);
    }
  }
}
