#include "ostro/cpu/gemm_block.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace ostro::cpu {
namespace {

// Shares of a core's L2 (1 MiB on Zen 5, 2 MiB on Sapphire Rapids).
constexpr int64_t kPackedABytes = 2 << 20;
constexpr int64_t kTileBytes = 1 << 19;
constexpr int64_t kPackPanels = 8;
// A C larger than this is written past the caches: it would not stay in them, and a plain store reads
// every line first.
constexpr int64_t kStreamBytes = int64_t{4} << 20;

thread_local Scratch packed_a_scratch;
thread_local Scratch tile_scratch;

// Asks for the cache lines of [begin, end) in L2.
void prefetch(const std::byte* begin, const std::byte* end) {
  for (const std::byte* line = begin; line < end; line += 64) __builtin_prefetch(line, 0, 2);
}

int64_t element_bytes(GemmType type) { return type == GemmType::kF32 ? 4 : 2; }

// A row of a tile (32-byte aligned) to C; `stream` past the caches where the address allows it.
void copy_row(const float* from, int64_t count, float* to, bool stream) {
  if (count % 8 != 0) {
    std::memcpy(to, from, static_cast<size_t>(count) * 4);
  } else if (stream && reinterpret_cast<uintptr_t>(to) % 32 == 0) {
    for (int64_t i = 0; i < count; i += 8) _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
  } else {
    for (int64_t i = 0; i < count; i += 8) _mm256_storeu_ps(to + i, _mm256_load_ps(from + i));
  }
}

void stream_64(const uint16_t* from, uint16_t* to) {
  for (int i = 0; i < 32; i += 16)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i)));
}

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
  stream_ = gemm.m() * gemm.n() * element_bytes(gemm.spec_.out) > kStreamBytes;
  packed_a_ = packed_a_scratch.get(whole_a_ ? whole : int64_t{kernel_.kc} * kernel_.a_bytes * row_panels_);
}

int GemmBlock::rows_of(int64_t row_panel) const {
  return static_cast<int>(
      std::min<int64_t>(kernel_.mr, gemm_.m() - (place_.row_panel_begin + row_panel) * kernel_.mr));
}

void GemmBlock::run() {
  if (kernel_.enter != nullptr) kernel_.enter();
  const int64_t tile = int64_t{kernel_.mr} * kernel_.nr;
  const bool one_segment = gemm_.segment_blocks_.size() == 2;
  const bool one_block = one_segment && gemm_.blocks_.size() == 1;
  const int64_t panels = place_.panel_end - place_.panel_begin;
  int64_t group = gemm_.group_panels_;
  // A tile that is finished at once needs no room of its own.
  if (!one_block) group = std::min(group, kTileBytes / (4 * tile * row_panels_ * gemm_.tree_slots_));
  group = std::clamp<int64_t>(group, 1, panels);
  slot_floats_ = one_block ? tile : tile * row_panels_ * group;
  tiles_ = reinterpret_cast<float*>(tile_scratch.get(slot_floats_ * gemm_.tree_slots_ * 4));
  for (int64_t begin = place_.panel_begin; begin < place_.panel_end; begin += group) {
    const int64_t end = std::min(place_.panel_end, begin + group);
    pack_now_ = !whole_a_ || begin == place_.panel_begin;
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

// Row panels [begin, end) of one block of k.
void GemmBlock::pack_a(const Gemm::KBlock& block, int64_t begin, int64_t end, std::byte* out,
                       int64_t panel_stride) const {
  gemm_.pack_panels({.kernel_pack = kernel_.pack_a,
                     .base = a_,
                     .w_offsets = gemm_.spec_.a_row,
                     .w_run = gemm_.a_row_run_,
                     .k_offsets = gemm_.spec_.a_col,
                     .k_run = gemm_.a_col_run_,
                     .width = kernel_.mr,
                     .k_bytes = kernel_.a_bytes},
                    block, place_.row_panel_begin + begin, place_.row_panel_begin + end,
                    out + begin * panel_stride, panel_stride);
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
    std::byte* packed_a = packed_a_ + (whole_a_ ? block.packed_begin * kernel_.a_bytes : 0);
    const int64_t b_stride = gemm_.packed_k_ * kernel_.b_bytes;
    const int64_t b_bytes = block.packed_count * kernel_.b_bytes;
    const bool last = store && i + 1 == end;
    // One panel of A stays in L1 and meets the panels of the group, which stay in L2, so that C is written
    // along its rows. A is packed a few panels ahead of its use.
    for (int64_t r = 0; r < row_panels_; ++r) {
      if (pack_now_ && r % kPackPanels == 0)
        pack_a(block, r, std::min(row_panels_, r + kPackPanels), packed_a, a_stride);
      for (int64_t p = panel_begin; p < panel_end; ++p) {
        const std::byte* b =
            place_.packed + (p - place_.panel_begin) * b_stride + block.packed_begin * kernel_.b_bytes;
        // The next group of B comes from far away: a slice of it with every panel of A.
        if (p + (panel_end - panel_begin) < place_.panel_end) {
          const std::byte* next = b + (panel_end - panel_begin) * b_stride;
          prefetch(next + b_bytes * r / row_panels_, next + b_bytes * (r + 1) / row_panels_);
        }
        if (last) prefetch_c(r, p);
        float* to = reuse_tile ? tiles : tiles + ((p - panel_begin) * row_panels_ + r) * tile;
        kernel_.multiply(block.packed_count, packed_a + r * a_stride, b, to, kernel_.nr, rows_of(r),
                         block.first);
        if (last) store_tile(to, r, p);
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

// Owns the lines that store_tile is going to write, so that they arrive while the tile is computed.
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
        copy_row(tile, columns, to + c_col[0], stream_);
      } else {
        for (int64_t j = 0; j < columns; ++j) to[c_col[j]] = tile[j];
      }
    } else {
      uint16_t* to = reinterpret_cast<uint16_t*>(c_) + c_row[r];
      if (contiguous) {
        if (stream_ && columns == 32 && reinterpret_cast<uintptr_t>(to + c_col[0]) % 32 == 0) {
          alignas(32) uint16_t rounded[32];
          kernel_.round_row(tile, columns, rounded);
          stream_64(rounded, to + c_col[0]);
        } else {
          kernel_.round_row(tile, columns, to + c_col[0]);
        }
      } else {
        uint16_t rounded[64];
        kernel_.round_row(tile, columns, rounded);
        for (int64_t j = 0; j < columns; ++j) to[c_col[j]] = rounded[j];
      }
    }
  }
}

}  // namespace ostro::cpu
