// FillArgs, CopyArgs: the arguments of kernels, in C that the host and device text share. A place in device
// memory is a number of 64 bits, 0 for none. Strides and offsets are in elements. Dtypes are numbers: see
// TYPE_ below; they are ir::DType's order.
//
// No #pragma once and no include: the host includes it in a namespace, device text contains it.

enum { TYPE_F32, TYPE_BF16, TYPE_F64, TYPE_I32, TYPE_I64, TYPE_U32, TYPE_BOOL, TYPE_I8 };
enum { MOST_AXES = 12, MOST_LEAVES = 256, MOST_LEVELS = 6 };

// The loops of an index space, outermost first, with what a step of each adds to an offset.
struct Axes {
  i64 rank;
  i64 size[MOST_AXES], stride[MOST_AXES];
};

// An integer scalar in device memory.
struct Scalar {
  u64 at;
  i64 type;
};

struct FillArgs {
  u64 to;
  i64 bytes;
};

// to[t] = from[f] for every point of the space. With `starts`, an i32 for every point of its own offsets,
// clamped to [0, limit], moves `from` and `to` by a multiple.
struct CopyArgs {
  u64 from, to, starts;
  i64 element_bytes, count;
  Axes from_axes, to_axes, start_axes;
  i64 limit, from_step, to_step;
};

// Of fill_words: `threads` threads write zeros.
struct FillWordsArgs {
  u64 to;
  i64 bytes, threads;
};

// to[t] = from[f] for every point of the space `axes`, whose strides are those of `from`. Elements have 1, 2,
// 4, 8 or 16 bytes.
struct RunsArgs {
  u64 from, to;
  i64 element_bytes, count;
  Axes axes;
  i64 to_stride[MOST_AXES];
};

struct IotaArgs {
  u64 to;
  i64 count;
  Scalar origin;
};

enum { DRAW_BITS, DRAW_UNIFORM, DRAW_NORMAL, DRAW_TRUNC_NORMAL };
struct RandomArgs {
  u64 key, to;
  i64 count, draw;
  Axes axes;  // strides are those of the whole array
  Scalar origin[MOST_AXES];
};
struct FoldInArgs {
  u64 key, to;
  Scalar data;
};

// Index i reads row index[i] - origin of the table.
struct GatherArgs {
  u64 table, index, to;
  i64 element_bytes, count, width, rows, row_stride;
  Scalar origin;
  Axes index_in_table, rest_in_table;
};

// Sources are added in order, leaf by leaf.
struct ScatterArgs {
  u64 update, index, to;
  i64 update_type, kept, sources, rows, row_stride;
  Scalar origin;
  Axes kept_in_update, kept_in_index, kept_in_to;
  u64 source_in_update, source_in_index;  // tables of i64
  u64 segment_ends;                       // table of i64
  i64 segments, levels, counts[MOST_LEVELS];
};

struct SortArgs {
  u64 from, to, indices;
  i64 type, n, keep, from_stride, to_stride, lines, descending;
  Axes from_axes, to_axes;
};

enum { REDUCE_SUM_STRIPED, REDUCE_SUM_SERIAL, REDUCE_MAX, REDUCE_MIN, REDUCE_ARGMAX, REDUCE_TREE };
struct ReduceArgs {
  u64 from, to;
  i64 kind, type, to_type, outputs;
  Axes kept;
  u64 reduced;  // table of i64: offsets of the reduced elements, leaf by leaf
  u64 segment_ends;
  i64 length, segments, levels, counts[MOST_LEVELS];
};

// to[i] = the elements i of what several workers sent, joined in their order (N8). Slice `place` of them is
// `own`; the others lie one behind the other at `received`. A place that is no slice: all were received.
enum { JOIN_TREE, JOIN_MAX, JOIN_SUM, JOIN_BITS };
struct JoinArgs {
  u64 own, received, to;
  i64 kind, type, count, slices, place;
};

struct BoxArgs {
  u64 from, to;
  i64 rank;
  i64 size[MOST_AXES], stride[MOST_AXES], boxes[MOST_AXES], length[MOST_AXES];
  u64 lane_sums;  // of large boxes: 64 f64 for each
  i64 lanes;      // that a block adds, of a large box
};

// The part of an array that begins at `origin`. Axis `rank` is the last one.
struct FingerprintArgs {
  u64 from, to;
  i64 element_bytes, rows, length, whole_words;
  i64 threads, in_a_line;  // of fingerprint_words: words lie together in memory and in the whole array
  Axes row_axes;           // all but the last; strides are those of the whole array's rows
  i64 rank, origin_stride[MOST_AXES];
  Scalar origin[MOST_AXES];
};

struct DequantizeArgs {
  u64 matrix, scales, to;
  i64 type, before, rows, after, groups;
};

// to[m, n] = sum over k of a[m, k] b[k, n], as offsets: a_row[i] + a_col[k], b_row[k] + b_col[j], c_row[i] +
// c_col[j]. All tables are of i64; batch has three numbers for each product.
struct DotArgs {
  u64 a, b, c, scales;
  u64 a_row, a_col, b_row, b_col, c_row, c_col, s_row, s_col, batch, segment_ends;
  i64 a_type, b_type, scale_type, c_type;
  i64 m, n, k, batches, segments, levels, counts[MOST_LEVELS];
  i64 goes_on;
  i64 a_along_k, b_along_k;  // tiles: neighbours along k lie together in memory
  i64 a_step, b_step;        // products/strided.cuh: from one k to the next
};

// Row r is multiplied by the matrix of its expert.
struct ExpertDotArgs {
  DotArgs dot;  // m: rows; a_row: of every row; c_row is r * n
  u64 expert;
  Axes expert_axes;
  Scalar origin;
  i64 experts, expert_stride, scale_stride;
};

// For every expert the sum over its rows of a[row, i] b[row, j].
struct ExpertOuterArgs {
  u64 a, b, to, expert;
  u64 a_row, a_col, b_row, b_col, expert_row;  // rows are in the order of the sum
  u64 segment_ends;
  Scalar origin;
  i64 type, to_type, m, n, experts, segments, levels, counts[MOST_LEVELS];
};

// Offsets by index: that of index i is element i of a table of i64 or, without a table, i * step.
struct Line {
  u64 table;
  i64 step;
};

// Rows of `size` numbers, at row[r] + k[i], become integers in blocks. Number i of row r has the draw
// row_draw[r] + k_draw[i] + the sum of origin * origin_stride.
struct QuantizeArgs {
  u64 from, q, scales, key;  // key 0: to nearest
  i64 key_step;              // from its first word to its second
  i64 type, rows, size, block, blocks;
  i64 aligned;  // q has whole words: its address, size and block are multiples of 4
  Line row, k, row_draw, k_draw;
  i64 rank;
  Scalar origin[MOST_AXES];
  i64 origin_stride[MOST_AXES];
  i64 warps;  // of the launch of quantize_whole
};

// to[m, n] of a[m, size] with scales a_scales[m, blocks], and b likewise.
struct DotInt8Args {
  u64 a, a_scales, b, b_scales, to;
  i64 to_type, m, n, size, block, blocks;
  i64 aligned;  // 16, 4 or 1: what the addresses of a and b, size and block are multiples of
  i64 goes_on;  // the chains over blocks begin with what is at `to`, f32
};

// A matrix of bytes as COPY_TILE takes it: gpu::TileMap.
struct alignas(64) TileMap {
  u64 words[16];
};
struct DotInt8TilesArgs {
  TileMap a_map, b_map;
  DotInt8Args dot;
};

// As ExpertDotArgs, of integers. Rows are counted in rows of a and b: a_row has one for every row of expert,
// b_row for every column of the result, b_step from one expert to the next.
struct ExpertDotInt8Args {
  u64 a, a_scales, b, b_scales, to, expert, a_row, b_row;
  Axes expert_axes;
  Scalar origin;
  i64 to_type, m, n, size, block, blocks, experts, b_step;
};

// As ExpertOuterArgs, of integers, which are working memory: row `order`[k] is number k of those sorted by
// expert, expert e has [begins[e], begins[e + 1]) of these, and its first scale is number begins[e] / block +
// e.
struct ExpertOuterInt8Args {
  u64 a, b, to, expert, key;
  u64 a_row, a_col, b_row, b_col, draw_row, draw_col, expert_row;  // tables of i64
  u64 order, begins, a_q, a_scales, b_q, b_scales;
  i64 key_step;
  Scalar origin;
  i64 a_type, b_type, m, n, rows, experts, block, blocks;  // blocks: scales of a column
  i64 rank;
  Scalar b_origin[MOST_AXES];
  i64 b_origin_stride[MOST_AXES];
};

// The place of an operand of attention. Element (b, h, i, d) is at offset batch[b] + head[h] + i * pos + d *
// dim. batch and head are tables of i64, or 0.
struct AttentionPlace {
  u64 at, batch, head;
  i64 pos, dim, type;
};
// Rows of two slices (N21): of row r `wide` high integers, `wide` low ones, and a scale; what lies behind
// head_dim is 0. turned: of every block of 128 rows [wide][2][128], for the kernels by tiles.
struct SlicedPlace {
  u64 integers, turned, scales;
};
struct AttentionArgs {
  AttentionPlace q, k, v, out, m, r, dout, dq, dk, dv, dsink, delta;
  AttentionPlace origin, query_segments, key_segments, prefix, key_limit, visible, sink;
  u64 leaf_ends;  // table of i64, of the query axis
  i64 batch, pos, key_pos, kv_heads, group, head_dim, leaves;
  i64 causal, window, partial, wide;
  float scale, soft_cap, kappa;
  SlicedPlace sliced_q, sliced_k, sliced_v,
      sliced_do;  // by [batch, head, row]; only where products are of integers
};
struct AttentionSlicesArgs {
  AttentionPlace x;       // head h of the result is number h * head_step of its table
  AttentionPlace origin;  // of queries, whose turned blocks are by absolute position
  SlicedPlace to;         // 0: not wanted
  i64 heads, rows, head_dim, head_step, wide, blocks;
};

// A pool of pages, and arrays with a place for each row and head: strides in elements.
struct PoolPlace {
  u64 at;
  i64 page, slot, kv_head, dim;
};
struct RowPlace {
  u64 at;
  i64 row, kv_head, group, dim;
};
struct PagedArgs {
  RowPlace q, out, sink;  // sink: at 0 where there is none; its row and dim are 0
  PoolPlace keys, values;
  u64 table, position;  // i32
  i64 table_row, table_entry, position_row;
  i64 type;  // of q, the pools and out
  i64 group, key_dim, value_dim, window;
  float scale, soft_cap, kappa;
};
struct PagedWriteArgs {
  u64 from, to, place;  // place: i32, dense
  i64 element_bytes, rows, width, row_stride, page_stride, slot_stride;
  Axes rest_in_rows, rest_in_pool;
};

struct CrossEntropyArgs {
  u64 logits, targets, loss, m, r, lse, w, to;
  i64 rows, vocab, to_type;
  i64 to_row;  // elements from a row of `to` to the next one
  Scalar origin;
  u64 leaf_ends;
  i64 leaves;
  float z;
};

// Case i of an admission check (cuda/admission): its operands follow from (u32)(first + i * step).
enum {
  BITS_ADD,
  BITS_MUL,
  BITS_DIV,
  BITS_FMA,
  BITS_SQRT,
  BITS_BF16,
  BITS_EXP,
  BITS_LOG,
  BITS_SIGMOID,
  BITS_TANH,
  BITS_E,
  BITS_OPS
};
struct BitsArgs {
  u64 to;  // a u32 for each case; of sum_integers 128 for each block, a product of [16, 32] and [32, 8]
  i64 op, count;
  u64 first, step;
};
