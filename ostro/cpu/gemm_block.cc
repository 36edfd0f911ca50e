#include "ostro/cpu/gemm_block.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ostro::cpu {
namespace {

// Shares of a core's L2 (1 MiB on Zen 5, 2 MiB on Sapphire Rapids).
constexpr int64_t kPackedABytes = 1 << 20;
constexpr int64_t kTileBytes = 1 << 19;

thread_local Scratch packed_a_scratch;
thread_local Scratch tile_scratch;

int64_t element_bytes(GemmType type) { return type == GemmType::kF32 ? 4 : 2; }

}  // namespace

GemmBlock::GemmBlock(const Gemm& gemm, const Place& place, const void* a, void* c)
    : gemm_(gemm),
      kernel_(*gemm.kernel_),
      place_(place),
      a_(static_cast<const std::byte*>(a) + place.offsets.a * element_bytes(gemm.spec_.in)),
      c_(static_cast<std::byte*>(c) + place.offsets.c * element_bytes(gemm.spec_.out)),
      row_panels_(place.row_panel_end - place.row_panel_begin) {
  const int64_t whole = gemm.packed_k_ * kernel_.a_bytes * row_panels_;
  whole_a_ = whole <= kPackedABytes;
  packed_a_ = packed_a_scratch.get(whole_a_ ? whole : int64_t{kernel_.kc} * kernel_.a_bytes * row_panels_);
}

int GemmBlock::rows_of(int64_t row_panel) const {
  return static_cast<int>(
      std::min<int64_t>(kernel_.mr, gemm_.m() - (place_.row_panel_begin + row_panel) * kernel_.mr));
}

void GemmBlock::run() {
  if (kernel_.enter != nullptr) kernel_.enter();
  if (whole_a_) {
    for (const Gemm::KBlock& block : gemm_.blocks_)
      pack_a(block, packed_a_ + block.packed_begin * kernel_.a_bytes, gemm_.packed_k_ * kernel_.a_bytes);
  }
  const int64_t tile = int64_t{kernel_.mr} * kernel_.nr;
  const bool one_segment = gemm_.segment_blocks_.size() == 2;
  const bool one_block = one_segment && gemm_.blocks_.size() == 1;
  // A tile that is finished at once needs no room of its own.
  const int64_t panels = place_.panel_end - place_.panel_begin;
  const int64_t group =
      one_block ? panels
                : std::clamp<int64_t>(kTileBytes / (4 * tile * row_panels_ * gemm_.tree_slots_), 1, panels);
  slot_floats_ = one_block ? tile : tile * row_panels_ * group;
  tiles_ = reinterpret_cast<float*>(tile_scratch.get(slot_floats_ * gemm_.tree_slots_ * 4));
  for (int64_t begin = place_.panel_begin; begin < place_.panel_end; begin += group) {
    const int64_t end = std::min(place_.panel_end, begin + group);
    if (one_segment) {
      segment(0, tiles_, begin, end, true);
      continue;
    }
    tree(0, 0, gemm_.spec_.tree_counts[0], 0, begin, end);
    for (int64_t p = begin; p < end; ++p)
      for (int64_t r = 0; r < row_panels_; ++r)
        store_tile(tiles_ + ((p - begin) * row_panels_ + r) * tile, r, p);
  }
  if (kernel_.leave != nullptr) kernel_.leave();
}

void GemmBlock::pack_a(const Gemm::KBlock& block, std::byte* out, int64_t panel_stride) const {
  for (int64_t r = 0; r < row_panels_; ++r) {
    const int64_t row = (place_.row_panel_begin + r) * kernel_.mr;
    const int rows = rows_of(r);
    kernel_.pack_a({.base = a_,
                    .w_offsets = gemm_.spec_.a_row.data() + row,
                    .width = rows,
                    .w_contiguous = gemm_.a_row_run_[row] >= rows,
                    .k_offsets = gemm_.spec_.a_col.data() + block.begin,
                    .k_run = gemm_.a_col_run_.data() + block.begin,
                    .count = block.count},
                   out + r * panel_stride);
  }
}

// The partial of one leaf into `tiles`, from +0; each finished tile goes to C at once when `store`.
void GemmBlock::segment(int64_t segment, float* tiles, int64_t panel_begin, int64_t panel_end, bool store) {
  const int64_t tile = int64_t{kernel_.mr} * kernel_.nr;
  const int64_t begin = gemm_.segment_blocks_[segment], end = gemm_.segment_blocks_[segment + 1];
  const bool reuse_tile = store && gemm_.blocks_.size() <= 1;
  if (begin == end) {
    std::memset(tiles, 0, static_cast<size_t>(slot_floats_) * 4);
    if (!store) return;
    for (int64_t p = panel_begin; p < panel_end; ++p)
      for (int64_t r = 0; r < row_panels_; ++r) store_tile(tiles, r, p);
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    const Gemm::KBlock& block = gemm_.blocks_[i];
    const int64_t a_stride = (whole_a_ ? gemm_.packed_k_ : block.packed_count) * kernel_.a_bytes;
    const std::byte* packed_a = packed_a_ + (whole_a_ ? block.packed_begin * kernel_.a_bytes : 0);
    if (!whole_a_) pack_a(block, packed_a_, a_stride);
    for (int64_t p = panel_begin; p < panel_end; ++p) {
      const std::byte* b =
          place_.packed + ((p - place_.panel_begin) * gemm_.packed_k_ + block.packed_begin) * kernel_.b_bytes;
      for (int64_t r = 0; r < row_panels_; ++r) {
        float* to = reuse_tile ? tiles : tiles + ((p - panel_begin) * row_panels_ + r) * tile;
        kernel_.multiply(block.packed_count, packed_a + r * a_stride, b, to, kernel_.nr, rows_of(r),
                         block.first);
        if (store && i + 1 == end) store_tile(to, r, p);
      }
    }
  }
}

// The tree of N8 over `count` subtrees of `level`, the first of them number `first`, into slot `slot`.
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

void GemmBlock::store_tile(const float* tile, int64_t row_panel, int64_t panel) const {
  const int64_t column = panel * kernel_.nr;
  const int64_t columns = std::min<int64_t>(kernel_.nr, gemm_.n() - column);
  const int64_t* c_col = gemm_.spec_.c_col.data() + column;
  const int64_t* c_row = gemm_.spec_.c_row.data() + (place_.row_panel_begin + row_panel) * kernel_.mr;
  const bool contiguous = gemm_.c_col_run_[column] >= columns;
  const int rows = rows_of(row_panel);
  for (int r = 0; r < rows; ++r, tile += kernel_.nr) {
    if (gemm_.spec_.out == GemmType::kF32) {
      float* to = reinterpret_cast<float*>(c_) + c_row[r];
      if (contiguous) {
        std::memcpy(to + c_col[0], tile, static_cast<size_t>(columns) * 4);
      } else {
        for (int64_t j = 0; j < columns; ++j) to[c_col[j]] = tile[j];
      }
    } else {
      uint16_t* to = reinterpret_cast<uint16_t*>(c_) + c_row[r];
      if (contiguous) {
        kernel_.round_row(tile, columns, to + c_col[0]);
      } else {
        uint16_t rounded[64];
        kernel_.round_row(tile, columns, rounded);
        for (int64_t j = 0; j < columns; ++j) to[c_col[j]] = rounded[j];
      }
    }
  }
}

}  // namespace ostro::cpu
