// One thread's part of a matrix product: a block of rows by a range of column panels. Internal to ostro/cpu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ostro/base/aligned.h"
#include "ostro/cpu/gemm.h"
#include "ostro/cpu/kernels/gemm_kernel.h"

namespace ostro::cpu {

// Memory that a thread keeps between products, grown when needed.
class Scratch {
 public:
  std::byte* get(int64_t bytes) {
    if (bytes > capacity_) {
      data_.reset();
      data_ = allocate_aligned(static_cast<size_t>(bytes));
      capacity_ = bytes;
    }
    return data_.get();
  }

 private:
  AlignedBytes data_;
  int64_t capacity_ = 0;
};

// f32 arithmetic of one block, from packing A to storing C.
class GemmBlock {
 public:
  // Rows [row_panel_begin, row_panel_end) in panels of mr. `packed` is the B of the batch entry: panel p of
  // [panel_begin, panel_end) starts at packed + (p - panel_begin) * packed_k * b_bytes.
  struct Place {
    GemmBatch offsets;
    int64_t row_panel_begin, row_panel_end;
    int64_t panel_begin, panel_end;
    const std::byte* packed;
  };

  GemmBlock(const Gemm& gemm, const Place& place, const void* a, void* c);
  void run();

 private:
  void pack_a(const Gemm::KBlock& block, int64_t begin, int64_t end, std::byte* out,
              int64_t panel_stride) const;
  void segment(int64_t segment, float* tiles, int64_t panel_begin, int64_t panel_end, bool store);
  void tree(size_t level, int64_t first, int64_t count, int slot, int64_t panel_begin, int64_t panel_end);
  void store_tile(const float* tile, int64_t row_panel, int64_t panel) const;
  void prefetch_c(int64_t row_panel, int64_t panel) const;
  int rows_of(int64_t row_panel) const;

  const Gemm& gemm_;
  const GemmKernel& kernel_;
  Place place_;
  const std::byte* a_;
  std::byte* c_;
  int64_t row_panels_;
  bool whole_a_;          // A is packed once for the whole contraction
  bool pack_now_ = true;  // this group of columns is the one that packs A
  bool stream_;           // C is written past the caches
  std::byte* packed_a_ = nullptr;
  float* tiles_ = nullptr;  // slots of [panel][row_panel][mr][nr]
  int64_t slot_floats_ = 0;
};

}  // namespace ostro::cpu
