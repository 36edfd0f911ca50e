#include "ostro/products/gemm_block.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace ostro::kernels {
namespace {

// Shares of a core's L2 (1 MiB on Zen 5, 2 MiB on Sapphire Rapids).
constexpr int64_t kPackedABytes = 2 << 20;
constexpr int64_t kTileBytes = 1 << 19;
constexpr int64_t kPackPanels = 8;
// A C larger than this is written past the caches: it would not stay in them, and a plain store reads
// every line first.
constexpr int64_t kStreamBytes = int64_t{4} << 20;

thread_local Scratch packed_a_scratch;
thread_local Scratch packed_b_scratch;
thread_local Scratch wide_b_scratch;
thread_local Scratch tile_scratch;

// Asks for the cache lines of [from, to) of the `bytes` at `begin` in L2.
void prefetch(const std::byte* begin, int64_t bytes, int64_t from, int64_t to) {
  for (const int64_t end = std::min(bytes, to); from < end; from += 64)
    __builtin_prefetch(begin + from, 0, 2);
}

// Bytes of each of `steps` parts, in whole lines.
int64_t part_of(int64_t bytes, int64_t steps) { return ceil_div(bytes, 64 * steps) * 64; }

}  // namespace

GemmBlock::GemmBlock(const Gemm& gemm, const Place& place, const void* a, GemmB b, void* c)
    : gemm_(gemm),
      kernel_(*gemm.kernel_),
      place_(place),
      a_(gemm.a_operand(static_cast<const std::byte*>(a) + place.offsets.a * element_bytes(gemm.spec_.in))),
      b_(gemm.b_operand(b)),
      c_(static_cast<std::byte*>(c) + place.offsets.c * element_bytes(gemm.spec_.out)),
      row_panels_(place.row_panel_end - place.row_panel_begin) {
  // Lines that were just read are in the caches anyway.
  const int64_t alone = gemm.m() * gemm.n() * element_bytes(gemm.spec_.out);
  stream_ = !place.go_on && std::max(alone, place.c_bytes) > kStreamBytes;
}

int GemmBlock::rows_of(int64_t row_panel) const {
  return static_cast<int>(
      std::min<int64_t>(kernel_.mr, gemm_.m() - (place_.row_panel_begin + row_panel) * kernel_.mr));
}

const std::byte* GemmBlock::packed_panel(const Gemm::Span& span, int64_t panel) const {
  const int64_t k =
      span.packed_begin * place_.packed_panels + (panel - place_.packed_begin) * span.packed_count;
  return place_.packed_b + k * kernel_.b_bytes;
}

// The loops, outermost first: groups of panels of B, of a size that L2 holds; spans of k; row panels of A;
// blocks of k; the panels of the group. Unless A is read in place, it is packed when its row panel is first
// needed: once for the whole block where several groups use it and L2 can hold it, else again for each group.
//
// With a single span, each row of tiles is finished and stored before the next begins (by_row_). With
// several, all tiles of the group are kept until the last span; with several leaves, one such slot per
// partial of the tree.
void GemmBlock::run() {
  if (kernel_.enter != nullptr) kernel_.enter();
  const int64_t tile = int64_t{kernel_.mr} * kernel_.nr;
  const bool one_segment = gemm_.segment_spans_.size() == 2;
  const int64_t panels = place_.panel_end - place_.panel_begin;
  by_row_ = one_segment && gemm_.spans_.size() == 1;
  int64_t group = std::clamp<int64_t>(gemm_.group_panels_, 1, panels);
  if (!by_row_)
    group = std::clamp<int64_t>(kTileBytes / (4 * tile * row_panels_ * gemm_.tree_slots_), 1, group);
  group = ceil_div(panels, ceil_div(panels, group));
  slot_floats_ = tile * group * (by_row_ ? 1 : row_panels_);
  tiles_ = reinterpret_cast<float*>(tile_scratch.get(slot_floats_ * gemm_.tree_slots_ * 4));
  // When several groups of columns use A and L2 can hold it, all of A stays packed; else it is packed a few
  // panels at a time.
  const int64_t whole = gemm_.packed_k_ * kernel_.a_bytes * row_panels_;
  whole_a_ = place_.packed_a != nullptr || (group < panels && whole <= kPackedABytes);
  // Rows contiguous in memory are packed together, so that whole lines are read.
  pack_step_ = gemm_.a_row_run_[place_.row_panel_begin * kernel_.mr] >= kernel_.mr ? kPackPanels : 1;
  if (place_.packed_a == nullptr && !gemm_.rows_a_)
    packed_a_ = packed_a_scratch.get(whole_a_ ? whole : gemm_.longest_span_ * kernel_.a_bytes * pack_step_);
  if (place_.packed_b == nullptr)
    packed_b_ = packed_b_scratch.get(gemm_.longest_span_ * kernel_.b_bytes * group);
  if (kernel_.widen_b != nullptr)
    wide_b_ = wide_b_scratch.get(gemm_.longest_span_ * kernel_.wide_bytes * group);
  for (int64_t begin = place_.panel_begin; begin < place_.panel_end; begin += group) {
    const int64_t end = std::min(place_.panel_end, begin + group);
    pack_now_ = place_.packed_a == nullptr && !gemm_.rows_a_ && (!whole_a_ || begin == place_.panel_begin);
    if (one_segment) {
      segment(0, tiles_, begin, end, true);
      continue;
    }
    tree(0, 0, gemm_.spec_.tree_counts[0], 0, begin, end);
    for (int64_t r = 0; r < row_panels_; ++r)
      for (int64_t p = begin; p < end; ++p) store_tile(tiles_ + ((p - begin) * row_panels_ + r) * tile, r, p);
  }
  if (kernel_.leave != nullptr) kernel_.leave();
  if (stream_) _mm_sfence();  // streamed lines are seen by other threads only after it
}

// The partial of one leaf into `tiles`, from +0; each finished tile goes to C at once when `store`.
void GemmBlock::segment(int64_t segment, float* tiles, int64_t panel_begin, int64_t panel_end, bool store) {
  const int64_t begin = gemm_.segment_spans_[segment], end = gemm_.segment_spans_[segment + 1];
  if (begin == end) {
    if (place_.go_on) return;
    std::memset(tiles, 0, static_cast<size_t>(slot_floats_) * 4);
    if (!store) return;
    for (int64_t p = panel_begin; p < panel_end; ++p)
      for (int64_t r = 0; r < row_panels_; ++r) store_tile(tiles, r, p);
    return;
  }
  for (int64_t i = begin; i < end; ++i) span(i, tiles, panel_begin, panel_end, store && i + 1 == end);
}

int64_t GemmBlock::group_of(const Gemm& gemm, int64_t panels) {
  return ceil_div(panels, ceil_div(panels, std::clamp<int64_t>(gemm.group_panels_, 1, panels)));
}

// Prefetches the panels of B that are packed next: those of this block, or after its last span those of the
// next block (place_.next).
void GemmBlock::look_ahead(const Gemm::Span& then, int64_t panel_begin, int64_t panel_end, bool last,
                           int64_t steps) {
  ahead_b_ = {};
  if (panel_begin < panel_end)
    return ahead_b_.begin(b_, then, panel_begin, panel_end, b_.w_run[panel_begin * b_.width] == 1, steps);
  if (!last || place_.next == nullptr || place_.next->gemm->spans_.empty()) return;
  const Next& next = *place_.next;
  const Gemm::Operand b = next.gemm->b_operand(next.b);
  const int64_t begin = next.panel_begin;
  ahead_b_.begin(b, next.gemm->spans_[0], begin, begin + group_of(*next.gemm, next.panel_end - begin),
                 b.w_run[begin * b.width] == 1, steps);
}

// Continues all tiles over the blocks of one span, and stores them to C when `store`. Packs (or widens) the
// group's panels of B first, and panels of A as it comes to them; while it multiplies, it prefetches the next
// panels of both, a slice per tile.
void GemmBlock::span(int64_t index, float* tiles, int64_t panel_begin, int64_t panel_end, bool store) {
  const Gemm::Span& span = gemm_.spans_[index];
  const int64_t tile = int64_t{kernel_.mr} * kernel_.nr;
  const int64_t panels = panel_end - panel_begin, blocks = span.block_end - span.block_begin;
  const int64_t steps = row_panels_ * blocks;  // of each panel of B
  const int64_t b_stride = span.packed_count * kernel_.b_bytes,
                a_stride = span.packed_count * kernel_.a_bytes;
  // What comes after this span: the next one of the group, or the first of the next group.
  const bool more_spans = index + 1 < static_cast<int64_t>(gemm_.spans_.size());
  const bool more_panels = panel_end < place_.panel_end;
  const Gemm::Span& then = gemm_.spans_[more_spans ? index + 1 : 0];
  const int64_t then_panel = more_spans ? panel_begin : panel_end;
  const int64_t then_end = std::min(place_.panel_end, then_panel + panels);
  const std::byte* packed_b = packed_b_;
  const std::byte* next_b = nullptr;
  if (packed_b_ != nullptr) {
    for (int64_t i = span.block_begin; i < span.block_end; ++i) {
      const Gemm::KBlock& block = gemm_.blocks_[i];
      gemm_.pack_panels(b_, block, panel_begin, panel_end,
                        packed_b_ + (block.packed_begin - span.packed_begin) * kernel_.b_bytes, b_stride);
    }
    if (kernel_.ahead) look_ahead(then, then_panel, then_end, !more_spans, steps * panels);
  } else {
    packed_b = packed_panel(span, panel_begin);
    next_b = packed_panel(then, then_panel);
  }
  const int64_t next_bytes = then.packed_count * kernel_.b_bytes, b_part = part_of(next_bytes, steps);
  const std::byte* read_b = packed_b;
  int64_t read_stride = b_stride;
  if (wide_b_ != nullptr) {
    read_b = wide_b_;
    read_stride = span.packed_count * kernel_.wide_bytes;
    for (int64_t p = 0; p < panels; ++p)
      kernel_.widen_b(span.packed_count, packed_b + p * b_stride, wide_b_ + p * read_stride);
  }
  for (int64_t r = 0; r < row_panels_; ++r) {
    const bool pack = pack_now_ && r % pack_step_ == 0;
    const int rows = rows_of(r);
    const int64_t a_at = whole_a_ ? r * a_stride + span.packed_begin * row_panels_ * kernel_.a_bytes
                                  : r % pack_step_ * a_stride;
    const std::byte* packed_a = nullptr;
    if (!gemm_.rows_a_) packed_a = (place_.packed_a != nullptr ? place_.packed_a : packed_a_) + a_at;
    const int64_t c_stride = store && by_row_ ? direct_stride(r) : 0;
    float* c_row =
        reinterpret_cast<float*>(c_) + gemm_.spec_.c_row[(place_.row_panel_begin + r) * kernel_.mr];
    const int64_t* a_row = gemm_.spec_.a_row.data() + (place_.row_panel_begin + r) * kernel_.mr;
    const float* a_rows = gemm_.rows_a_ ? static_cast<const float*>(a_.base) + a_row[0] : nullptr;
    const int64_t lda = rows > 1 ? a_row[1] - a_row[0] : 0;
    if (pack && kernel_.ahead) {
      const bool rest = r + pack_step_ < row_panels_;
      ahead_a_ = {};
      if (rest || more_spans || (more_panels && !whole_a_)) {
        const int64_t row_panel = place_.row_panel_begin + (rest ? r + pack_step_ : 0);
        ahead_a_.begin(a_, rest ? span : then, row_panel,
                       std::min(place_.row_panel_end, row_panel + pack_step_), pack_step_ == 1,
                       panels * blocks * pack_step_);
      }
    }
    for (int64_t i = span.block_begin; i < span.block_end; ++i) {
      const Gemm::KBlock& block = gemm_.blocks_[i];
      const int64_t k_at = block.packed_begin - span.packed_begin;
      const int64_t row_panel = place_.row_panel_begin + r;
      if (pack)
        gemm_.pack_panels(a_, block, row_panel, std::min(place_.row_panel_end, row_panel + pack_step_),
                          packed_a_ + a_at + k_at * kernel_.a_bytes, a_stride);
      const int64_t a_bytes = block.packed_count * kernel_.a_bytes, a_part = part_of(a_bytes, panels);
      const bool last = store && i + 1 == span.block_end;
      // One panel of A stays in L1 and is multiplied with all panels of the group, which stay in L2. So C is
      // written along its rows.
      for (int64_t p = panel_begin; p < panel_end; ++p) {
        const std::byte* b = read_b + (p - panel_begin) * read_stride + k_at * kernel_.read_bytes();
        if (packed_b_ != nullptr) {
          ahead_b_.step();
        } else if (kernel_.ahead && then_panel + p - panel_begin < then_end) {
          const int64_t step = r * blocks + i - span.block_begin;
          prefetch(next_b + (p - panel_begin) * next_bytes, next_bytes, step * b_part, (step + 1) * b_part);
        }
        if (pack_now_) {
          ahead_a_.step();
        } else if (kernel_.ahead && r + 1 < row_panels_) {
          prefetch(packed_a + a_stride + k_at * kernel_.a_bytes, a_bytes, (p - panel_begin) * a_part,
                   (p - panel_begin + 1) * a_part);
        }
        const bool resume = block.first && place_.go_on;
        if (resume && p + 1 < panel_end) prefetch_c(r, p + 1);
        if (last && !place_.go_on) prefetch_c(r, p);
        float* to = tiles + ((p - panel_begin) * (by_row_ ? 1 : row_panels_) + (by_row_ ? 0 : r)) * tile;
        const int64_t column = p * kernel_.nr;
        const bool first = block.first && !place_.go_on;
        const bool direct = c_stride != 0 && gemm_.c_col_run_[column] >= kernel_.nr;
        if (resume && !direct) load_tile(to, r, p);
        float* result = direct ? c_row + gemm_.spec_.c_col[column] : to;
        const int64_t ldc = direct ? c_stride : kernel_.nr;
        if (gemm_.rows_a_)
          kernel_.multiply_rows(block.count, a_rows + gemm_.spec_.a_col[block.begin], lda, b, result, ldc,
                                rows, first);
        else
          kernel_.multiply(block.packed_count, packed_a + k_at * kernel_.a_bytes, b, result, ldc, rows,
                           first);
        if (last && !direct) store_tile(to, r, p);
      }
    }
  }
}

void GemmBlock::Ahead::begin(const Gemm::Operand& operand, const Gemm::Span& span, int64_t begin, int64_t end,
                             bool along_k, int64_t steps) {
  const int64_t w = begin * operand.width;
  const int64_t w_count = std::min(static_cast<int64_t>(operand.w_offsets.size()), end * operand.width) - w;
  const int64_t* w_offsets = operand.w_offsets.data() + w;
  const int64_t* k_offsets = operand.k_offsets.data() + span.begin;
  base_ = static_cast<const std::byte*>(operand.base);
  element_ = operand.element;
  in_line_ = 64 / element_;
  line_ = along_k ? k_offsets : w_offsets;
  line_end_ = line_ + (along_k ? span.count : w_count);
  at_ = line_;
  other_ = along_k ? w_offsets : k_offsets;
  other_end_ = other_ + (along_k ? w_count : span.count);
  per_step_ = ceil_div(ceil_div(line_end_ - line_, in_line_) * (other_end_ - other_), steps);
}

void GemmBlock::Ahead::step() {
  for (int64_t i = 0; i < per_step_ && other_ != other_end_; ++i) {
    // Into L1: a Zen 5 does not have the lines in L2 in time after a prefetch into L2 alone.
    __builtin_prefetch(base_ + (*other_ + *at_) * element_, 0, 3);
    if (line_end_ - at_ > in_line_) {
      at_ += in_line_;
    } else {
      at_ = line_;
      ++other_;
    }
  }
}

// The tree of N8 over `count` subtrees of `level`, the first of them number `first`, into slot `slot`. The
// left part is the largest power of two below the count; the right part is summed in the slot above and
// added.
void GemmBlock::tree(size_t level, int64_t first, int64_t count, int slot, int64_t panel_begin,
                     int64_t panel_end) {
  const std::vector<int64_t>& counts = gemm_.spec_.tree_counts;
  float* to = tiles_ + slot * slot_floats_;
  if (count == 1) {
    if (level + 1 == counts.size()) {
      segment(first, to, panel_begin, panel_end, false);
    } else {
      tree(level + 1, first * counts[level + 1], counts[level + 1], slot, panel_begin, panel_end);
    }
    return;
  }
  const int64_t left = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count - 1)));
  tree(level, first, left, slot, panel_begin, panel_end);
  tree(level, first + left, count - left, slot + 1, panel_begin, panel_end);
  const float* right = to + slot_floats_;
  const int64_t floats = (panel_end - panel_begin) * row_panels_ * kernel_.mr * kernel_.nr;
  for (int64_t i = 0; i < floats; ++i) to[i] = to[i] + right[i];
}

// Prefetches, for writing, the cache lines that store_tile will write, so that they arrive while the tile is
// computed.
void GemmBlock::prefetch_c(int64_t row_panel, int64_t panel) const {
  const int64_t column = panel * kernel_.nr;
  const int64_t* c_row = gemm_.spec_.c_row.data() + (place_.row_panel_begin + row_panel) * kernel_.mr;
  const int64_t columns = std::min<int64_t>(kernel_.nr, gemm_.n() - column);
  if (stream_ || gemm_.c_col_run_[column] < columns) return;
  const int64_t element = element_bytes(gemm_.spec_.out);
  const int rows = rows_of(row_panel);
  for (int r = 0; r < rows; ++r) {
    const std::byte* to = c_ + (c_row[r] + gemm_.spec_.c_col[column]) * element;
    for (int64_t at = 0; at < columns * element; at += 64) __builtin_prefetch(to + at, 1, 3);
  }
}

int64_t GemmBlock::direct_stride(int64_t row_panel) const {
  if (!kernel_.direct || gemm_.spec_.out != GemmType::kF32) return 0;
  const int64_t* c_row = gemm_.spec_.c_row.data() + (place_.row_panel_begin + row_panel) * kernel_.mr;
  const int rows = rows_of(row_panel);
  const int64_t stride = rows > 1 ? c_row[1] - c_row[0] : kernel_.nr;
  for (int i = 2; i < rows; ++i)
    if (c_row[i] - c_row[i - 1] != stride) return 0;
  return stride;
}

// Loads a tile from an f32 C. Elements outside C are +0.
void GemmBlock::load_tile(float* tile, int64_t row_panel, int64_t panel) const {
  const int64_t column = panel * kernel_.nr;
  const int64_t columns = std::min<int64_t>(kernel_.nr, gemm_.n() - column);
  const int64_t* c_col = gemm_.spec_.c_col.data() + column;
  const int64_t* c_row = gemm_.spec_.c_row.data() + (place_.row_panel_begin + row_panel) * kernel_.mr;
  const float* c = reinterpret_cast<const float*>(c_);
  const int rows = rows_of(row_panel);
  if (rows < kernel_.mr || columns < kernel_.nr)
    std::memset(tile, 0, static_cast<size_t>(kernel_.mr * kernel_.nr) * 4);
  for (int r = 0; r < rows; ++r, tile += kernel_.nr) {
    if (gemm_.c_col_run_[column] >= columns)
      std::memcpy(tile, c + c_row[r] + c_col[0], static_cast<size_t>(columns) * 4);
    else
      for (int64_t j = 0; j < columns; ++j) tile[j] = c[c_row[r] + c_col[j]];
  }
}

void GemmBlock::store_tile(const float* tile, int64_t row_panel, int64_t panel) const {
  const int64_t column = panel * kernel_.nr;
  const int64_t columns = std::min<int64_t>(kernel_.nr, gemm_.n() - column);
  const int64_t* c_col = gemm_.spec_.c_col.data() + column;
  const int64_t* c_row = gemm_.spec_.c_row.data() + (place_.row_panel_begin + row_panel) * kernel_.mr;
  const bool f32 = gemm_.spec_.out == GemmType::kF32;
  float* c32 = reinterpret_cast<float*>(c_);
  uint16_t* c16 = reinterpret_cast<uint16_t*>(c_);
  const int rows = rows_of(row_panel);
  if (gemm_.c_col_run_[column] >= columns) {
    const TileRows finished = {tile, rows, static_cast<int>(columns), c_row, stream_};
    return f32 ? kernel_.store_f32(finished, c32 + c_col[0]) : kernel_.store_bf16(finished, c16 + c_col[0]);
  }
  for (int r = 0; r < rows; ++r, tile += kernel_.nr) {
    if (f32) {
      for (int64_t j = 0; j < columns; ++j) c32[c_row[r] + c_col[j]] = tile[j];
    } else {
      uint16_t rounded[64];
      kernel_.round_row(tile, columns, rounded);
      for (int64_t j = 0; j < columns; ++j) c16[c_row[r] + c_col[j]] = rounded[j];
    }
  }
}

}  // namespace ostro::kernels
