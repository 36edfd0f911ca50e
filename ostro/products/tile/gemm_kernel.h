// GemmKernel: the packers and the tile kernel of one instruction set for matrix products. gemm.cc and
// gemm_block.cc do everything else. Internal to ostro/kernels.
#pragma once

#include <cstdint>

namespace ostro::kernels {

// Part of an operand to be packed into one panel: `width` rows of A or columns of B ("w"), `count` steps of
// the contraction ("k"). Element (w, k) is base[w_offsets[w] + k_offsets[k]].
struct PanelSource {
  const void* base;
  const int64_t* w_offsets;
  int width;          // 1 to the panel's full width; the rest of the panel is filled with zeros
  bool w_contiguous;  // w_offsets ascend by one over the whole width
  const int64_t* k_offsets;
  const int32_t* k_run;  // k_run[k]: how many of k, k + 1, ... ascend by one (at least 1)
  int64_t count;
};

// Rows of a finished tile whose columns are neighbours in C.
struct TileRows {
  const float* tile;       // [rows][nr], aligned for vectors
  int rows, columns;       // columns: 1 to nr
  const int64_t* offsets;  // of each row's first element in C
  bool stream;             // write past the caches (non-temporal stores) where the alignment allows it
};

struct GemmKernel {
  int mr, nr;            // rows and columns of the tile, and so widths of the A and B panels
  int k_unit;            // packed k is padded with +0 to a multiple of this, per segment
  int a_bytes, b_bytes;  // bytes of one k in a packed panel
  void (*pack_a)(const PanelSource&, void* out);
  void (*pack_b)(const PanelSource&, void* out);
  // b as packed, or as widened where widen_b is given.
  // c[rows][nr], row stride ldc floats: continues from c, or from +0 when `first`. k is a multiple of k_unit.
  // Rows up to the next multiple of row_unit are written too.
  void (*multiply)(int64_t k, const void* a, const void* b, float* c, int64_t ldc, int rows, bool first);
  int row_unit;
  // f32 to bf16 as N1 says.
  void (*round_row)(const float* in, int64_t count, uint16_t* out);
  void (*store_f32)(const TileRows&, float* c);
  void (*store_bf16)(const TileRows&, uint16_t* c);
  // Around a thread's calls of multiply; nullptr when there is nothing to set up.
  void (*enter)();
  void (*leave)();
  // Blocking: k steps of a panel that stay in L1, and the least rows of A in a block.
  int kc, mc;
  // Widens a packed panel of B to wide_bytes per k, when many rows of A use it from L2; multiply then reads
  // the widened form. nullptr: multiply reads the packed form.
  void (*widen_b)(int64_t k, const void* packed, void* wide) = nullptr;
  int wide_bytes = 0;

  // True: multiply may write directly into C, with any row stride, where C is f32 and its rows are evenly
  // spaced.
  bool direct = false;

  // multiply on an f32 A as it lies in memory, k contiguous and rows lda floats apart; nullptr: A is packed.
  void (*multiply_rows)(int64_t k, const float* a, int64_t lda, const void* b, float* c, int64_t ldc,
                        int rows, bool first) = nullptr;

  // True: prefetch the next panels in software. False for tiles that read long rows from L1 and L2: there the
  // hardware prefetcher is better, and software prefetches delay the tile's own first loads.
  bool ahead = true;

  // pack_a and pack_b for `panels` whole panels at once, when all their w are contiguous in memory. In `out`
  // the panels are `stride` bytes apart. nullptr: pack panel by panel.
  void (*pack_a_across)(const PanelSource&, int64_t panels, int64_t stride, void* out) = nullptr;
  void (*pack_b_across)(const PanelSource&, int64_t panels, int64_t stride, void* out) = nullptr;

  int read_bytes() const { return widen_b != nullptr ? wide_bytes : b_bytes; }
};

const GemmKernel& gemm_f32_generic();
const GemmKernel& gemm_bf16_generic();
const GemmKernel& gemm_f32_avx2();
const GemmKernel& gemm_bf16_avx2();
const GemmKernel& gemm_f32_avx512();
const GemmKernel& gemm_bf16_avx512();
const GemmKernel& gemm_bf16_avx512bf16();
const GemmKernel& gemm_bf16_amx();
// By the rule of tensor cores (docs/spec/numerics.md, N23).
const GemmKernel& gemm_tc16_generic();
const GemmKernel& gemm_tc16_avx2();
const GemmKernel& gemm_tc16_avx512();

}  // namespace ostro::kernels
