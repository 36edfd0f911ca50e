// Gemm: matrix products C = A B with the arithmetic of docs/spec/numerics.md, N6 (f32) and N7 or N23 (bf16),
// contraction leaves and trees of N8 included. The bits do not depend on instruction set, thread count or
// blocking.
//
// Operands are addressed by offset tables, in elements, so that callers never transpose:
//   A(m, k) = a[a_row[m] + a_col[k]], B(k, n) = b[b_row[k] + b_col[n]], C(m, n) = c[c_row[m] + c_col[n]].
// Packing is fast where m, n or k is contiguous in memory (in runs; the tables may jump between them).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/machine/isa.h"
#include "ostro/machine/thread_pool.h"

namespace ostro::kernels {

struct FewKernel;
enum class FewOrder;
struct GemmKernel;
struct Int8Kernel;
struct PanelSource;

enum class GemmType { kF32, kBf16 };

// p: a B that lies in panels [n / p, k, p] is read fastest by products of few rows, and no slower by others.
// 0: no such panels.
int64_t panel_columns(GemmType in, machine::Isa isa);

// The second operand in memory: the elements, and where they are int8 (GemmSpec::int8_b) their scales.
struct GemmB {
  GemmB(const void* elements) : data(elements) {}  // NOLINT: a matrix without scales
  GemmB(const void* elements, const void* their_scales) : data(elements), scales(their_scales) {}
  const void *data, *scales = nullptr;
};

// Offsets added to the base pointers, in elements; one entry per product of a batch.
struct GemmBatch {
  int64_t a = 0, b = 0, c = 0;
};

struct GemmSpec {
  GemmType in = GemmType::kF32;       // both operands
  GemmType out = GemmType::kF32;      // bf16: rounded once, after all trees
  bool tc16 = false;                  // of bf16: the rule of tensor cores (N23)
  std::vector<int64_t> a_row, a_col;  // m, k entries
  std::vector<int64_t> b_row, b_col;  // k, n entries
  std::vector<int64_t> c_row, c_col;  // m, n entries; outputs must not overlap
  std::vector<GemmBatch> batch = {{}};
  // B is int8, read as B(k, n) * scales[s_row[k] + s_col[n]], scales in the dtype of `in`, and the product
  // rounded to that dtype once (numerics.md N1, dequantize). One product, no batch.
  bool int8_b = false;
  std::vector<int64_t> s_row, s_col;  // k, n entries
  // Leaves of the contraction: k is listed leaf by leaf, leaf i ends before segment_ends[i] (ascending, the
  // last is k; equal ends make an empty leaf, which counts as +0). Empty: one leaf.
  std::vector<int64_t> segment_ends;
  // The trees over the leaves, outermost first; their product is the number of leaves. Empty: one tree.
  std::vector<int64_t> tree_counts;
};

// B in a kernel's own layout, made by Gemm::pack_b and read by every Gemm that has the same instruction set,
// k, leaves and n and the same distinct batch offsets of B; m and the rest may differ. Owns its memory.
class PackedB {
 public:
  int64_t bytes() const { return bytes_; }

 private:
  friend class Gemm;
  AlignedBytes data_;
  int64_t capacity_ = 0, bytes_ = 0;
  const GemmKernel* kernel_ = nullptr;
  std::vector<int64_t> segment_ends_;  // the layout follows the leaves
};

class Gemm;

// One product of several that run together.
struct GemmCall {
  const Gemm* gemm;
  const void* a;
  GemmB b;
  void* c;
};

// A product of fixed shape and layout, prepared once and run many times. Immutable, so one Gemm may run on
// several threads at once. A run allocates nothing, once the scratch memory of each thread is large enough.
class Gemm {
 public:
  // `isa` must be available (isa.h). Aborts when the sizes of the tables contradict each other.
  Gemm(GemmSpec spec, machine::Isa isa);

  int64_t m() const { return static_cast<int64_t>(spec_.a_row.size()); }
  int64_t n() const { return static_cast<int64_t>(spec_.b_col.size()); }
  int64_t k() const { return static_cast<int64_t>(spec_.a_col.size()); }

  // Packs B (for all batch entries), reusing the memory of `out` where it is large enough.
  void pack_b(machine::ThreadPool& pool, GemmB b, PackedB& out) const;

  // C = A B; a, b and c point to float or to bf16 (uint16_t) as the spec says. With `go_on` the sums start
  // from what C holds instead of from +0. So a contraction can be done in several calls with the same bits,
  // if every piece but the last is a multiple of 32 long (N6; N7, continuation). Only for an f32 C without
  // leaves. Where B is A transposed, in the same memory, C is symmetric bit for bit (fma(x, y, z) is fma(y,
  // x, z) in N6 and N7; N23 has no order), and only half of it is computed.
  void run(machine::ThreadPool& pool, const void* a, GemmB b, void* c, bool go_on = false) const;
  void run(machine::ThreadPool& pool, const void* a, const PackedB& b, void* c) const;

  // Several products of different sizes and operands, without batches, as one job: every thread takes blocks
  // of them. For each, as run().
  static void run_all(machine::ThreadPool& pool, std::span<const GemmCall> calls);

 private:
  friend class GemmBlock;

  // A piece of one leaf's contraction, at most kc long. packed_begin: how many k are packed before it.
  struct KBlock {
    int64_t begin, count, packed_begin, packed_count;
    bool first;        // of its leaf
    int64_t span = 0;  // that it is part of
  };
  // Neighbouring blocks of one leaf. A panel of A is packed for the whole span at once and kept. A leaf is
  // one span unless it is long.
  struct Span {
    int64_t block_begin, block_end, begin, count, packed_begin, packed_count;
  };
  // A range of distinct B matrices and of their panels, packed at once.
  struct Chunk {
    int64_t b_begin, b_end, panel_begin, panel_end;
  };

  // One operand as the packers see it; w is its other index.
  struct Operand {
    void (*kernel_pack)(const PanelSource&, void* out);
    void (*kernel_across)(const PanelSource&, int64_t panels, int64_t stride, void* out);
    const void* base;
    const std::vector<int64_t>& w_offsets;
    const std::vector<int32_t>& w_run;
    const std::vector<int64_t>& k_offsets;
    const std::vector<int32_t>& k_run;
    int64_t element;               // bytes
    int width;                     // of a panel
    int k_bytes;                   // of one k in a packed panel
    const void* scales = nullptr;  // of int8 elements
  };

  // Packs panels [begin, end) of one block of k. They are `panel_stride` bytes apart in `out`.
  void pack_panels(const Operand& operand, const KBlock& block, int64_t begin, int64_t end, std::byte* out,
                   int64_t panel_stride) const;
  // pack_panels for int8 elements, which are dequantised on the way.
  void pack_int8(const Operand& operand, const KBlock& block, int64_t begin, int64_t end, std::byte* out,
                 int64_t panel_stride) const;
  void plan_contraction();
  void plan_spans(int64_t first_block);
  void plan_batch();
  void plan_chunks();
  void plan_trees();
  void plan_rows();
  Operand a_operand(const void* a) const;
  Operand b_operand(GemmB b) const;
  // Packs panels [begin, end), for all of k, of the matrices that begin `offsets` elements after the
  // operand's base. The matrices follow each other in `out`; each is stored span by span. So the panels that
  // a group reads are neighbours in memory and can all stay in a cache, however large k is.
  void pack(machine::ThreadPool& pool, const Operand& operand, std::span<const int64_t> offsets,
            int64_t begin, int64_t end, std::byte* out) const;
  void pack_chunk(machine::ThreadPool& pool, GemmB b, const Chunk& chunk, std::byte* out) const;
  // For a B that is larger than A: packs all of A first, unless A is read in place, and packs B one group of
  // panels at a time.
  void run_wide(machine::ThreadPool& pool, const void* a, GemmB b, void* c, bool go_on) const;
  // Products of few rows, which read B once, where it lies, and never pack it: how B lies.
  enum class Few { kNo, kAcross, kAlong, kPanels, kInt8 };
  // With a B of f32 or bf16 (few_rows.cc), as FewOrder says.
  static void run_few_rows(machine::ThreadPool& pool, std::span<const GemmCall> calls, bool go_on);
  Few plan_few_rows() const;
  bool steps_ascend(int64_t by) const;  // the rows of B, in each leaf
  bool lies_in_panels() const;
  static FewOrder order_of(Few few);
  // With an int8 B (gemm_int8.cc).
  static void run_few_int8(machine::ThreadPool& pool, std::span<const GemmCall> calls);
  bool plan_few_int8() const;
  // Whether run_few_int8 gives the right bits with these scales.
  bool takes_few(GemmB b) const;
  // `half`: of a symmetric C only blocks that reach above the diagonal.
  void multiply_chunk(machine::ThreadPool& pool, const void* a, const Chunk& chunk, const std::byte* packed,
                      void* c, bool go_on, bool half = false) const;
  // Whether C is symmetric when a and b are the same matrix.
  bool plan_symmetry() const;
  // The elements below the diagonal, from those above it.
  void mirror(machine::ThreadPool& pool, void* c) const;

  GemmSpec spec_;
  const GemmKernel* kernel_;
  int64_t m_panels_, n_panels_;
  int64_t packed_k_ = 0;
  std::vector<KBlock> blocks_;
  std::vector<Span> spans_;
  std::vector<int64_t> segment_spans_;  // spans of leaf i: [segment_spans_[i], segment_spans_[i + 1])
  int64_t longest_span_ = 1;            // packed
  std::vector<int32_t> a_row_run_, a_col_run_, b_row_run_, b_col_run_, c_col_run_;
  std::vector<int64_t> b_offsets_;    // the distinct ones, in order of first use
  std::vector<int64_t> entries_;      // batch entries ordered by their B
  std::vector<int64_t> entry_begin_;  // entries of distinct B i: [entry_begin_[i], entry_begin_[i + 1])
  std::vector<Chunk> chunks_;
  int64_t group_panels_ = 1;  // panels of B that are used together and fit into L2
  bool wide_ = false;         // run_wide is used
  const Int8Kernel* int8_kernel_ = nullptr;
  const FewKernel* few_kernel_;
  Few few_ = Few::kNo;
  bool symmetric_ = false;  // plan_symmetry()
  bool rows_a_ = false;     // A is read as it lies in memory, never packed
  int tree_slots_ = 1;      // partials alive at once
};

}  // namespace ostro::kernels
