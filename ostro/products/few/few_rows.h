// run_few_products: products C = A B of few rows, with B of f32 or bf16: every thread takes ranges of columns
// and reads their elements once, where they lie in memory. Packing them, as for many rows, would move each of
// them three times. The bits are those of Gemm (products/gemm.h): N6, N7 and N8 of docs/spec/numerics.md.
#pragma once

#include <cstdint>
#include <span>

#include "ostro/machine/thread_pool.h"
#include "ostro/products/few/few_kernel.h"

namespace ostro::kernels {

// How B lies: its columns are contiguous; its steps are, in each leaf; or it is in panels of FewKernel::unit
// columns: those of one step are contiguous, and in each leaf of the contraction the steps of a panel are.
enum class FewOrder { kAcross, kAlong, kPanels };

// Offsets are in elements. Everything is borrowed.
struct FewProduct {
  const FewKernel* kernel;
  bool f32, out_f32;  // the operands, and C; else they are bf16
  bool c_runs;        // c_col ascends by one
  FewOrder order;
  bool go_on;                                           // from what C holds; an f32 C without leaves
  std::span<const int64_t> a_row, a_col;                // m, k entries
  std::span<const int64_t> b_row, b_col;                // k, n entries
  std::span<const int64_t> c_row, c_col;                // m, n entries
  std::span<const int64_t> leaf_ends, tree_counts;      // GemmSpec::segment_ends and tree_counts, not empty
  void (*round_row)(const float*, int64_t, uint16_t*);  // f32 to bf16
  const void *a, *b;
  void* c;

  int64_t m() const { return static_cast<int64_t>(a_row.size()); }
  int64_t n() const { return static_cast<int64_t>(b_col.size()); }
  int64_t k() const { return static_cast<int64_t>(a_col.size()); }
};

// All products as one job of the pool. 1 <= m <= kFewRows, n at least a unit, k at least 1.
void run_few_products(machine::ThreadPool& pool, std::span<const FewProduct> products);

// Whether each offset is the one before it plus `by`.
bool ascends(std::span<const int64_t> offsets, int64_t by = 1);

}  // namespace ostro::kernels
