// Int8Dot: products of int8 numbers with scales, C = A B^T with the arithmetic of docs/spec/numerics.md, N20:
// an exact sum inside each block, one fma for each block in ascending order, the trees of N8 over leaves. The
// bits do not depend on instruction set, thread count or the way the work is cut.
//
// A is [m, k] and B [n, k], both with k contiguous. A is the left operand, whose scale comes last.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/machine/isa.h"
#include "ostro/machine/thread_pool.h"
#include "ostro/products/gemm.h"
#include "ostro/products/int8_blocks.h"

namespace ostro::kernels {

struct DotInt8Kernel;

// An operand in a kernel's own layout, made by Int8Dot::pack_a or pack_b and read by every Int8Dot with the
// same instruction set, the same blocks and as many rows on that side. Owns its memory, which is reused.
class PackedInt8 {
 public:
  int64_t bytes() const { return bytes_; }

 private:
  friend class Int8Dot;
  AlignedBytes data_;
  int64_t capacity_ = 0, bytes_ = 0, rows_ = 0;
  const DotInt8Kernel* kernel_ = nullptr;
  Int8Blocks blocks_{0};
  bool left_ = false;
};

// One side of a product: as a quantiser left it, or packed before.
struct Int8Side {
  Int8Side(const Int8Operand& operand) : rows(operand) {}    // NOLINT: either stands for the other
  Int8Side(const PackedInt8& operand) : packed(&operand) {}  // NOLINT
  Int8Operand rows;
  const PackedInt8* packed = nullptr;
};

struct Int8DotSpec {
  int64_t m, n;
  Int8Blocks blocks;
  // The trees over the leaves, outermost first; their product is the number of leaves. Empty: one tree.
  std::vector<int64_t> tree_counts = {};
  GemmType out = GemmType::kF32;  // bf16: rounded once, after all trees
  int64_t c_stride = 0;           // elements from one row of C to the next; 0: n
  // Where each row of C begins, in elements; empty: at even distances.
  std::vector<int64_t> c_row = {};
};

class Int8Dot;

// One product of several that run together.
struct Int8DotCall {
  const Int8Dot* dot;
  Int8Side a, b;
  void* c;
};

// A product of fixed shape, prepared once and run many times. Immutable, so one Int8Dot may run on several
// threads at once. The calling thread keeps the scratch memory of a run for its next one.
class Int8Dot {
 public:
  // `isa` must be available (isa.h). The kernel is the fastest one of that instruction set that passed the
  // start-up check (int8_admission.h). Aborts when the sizes of the spec contradict each other.
  Int8Dot(Int8DotSpec spec, machine::Isa isa);
  // With the kernel given; for tests and benchmarks.
  Int8Dot(Int8DotSpec spec, const DotInt8Kernel& kernel);

  int64_t m() const { return spec_.m; }
  int64_t n() const { return spec_.n; }
  int64_t k() const { return spec_.blocks.k(); }

  void pack_a(machine::ThreadPool& pool, const Int8Operand& a, PackedInt8& out) const;
  void pack_b(machine::ThreadPool& pool, const Int8Operand& b, PackedInt8& out) const;

  // C = A B^T; c points to float or to bf16 (uint16_t) as the spec says. With `go_on` the sums start from
  // what C holds instead of from +0: so a contraction can be done in several calls with the same bits, if
  // every piece ends where a block ends. Only for an f32 C without leaves.
  void run(machine::ThreadPool& pool, const Int8Side& a, const Int8Side& b, void* c,
           bool go_on = false) const;

  // Several products of different sizes and operands as one job (the products of experts): every thread takes
  // tiles of them. For each, as run().
  static void run_all(machine::ThreadPool& pool, std::span<const Int8DotCall> calls);

 private:
  struct Task;
  // A panel of A, one of B, and room for tree_slots_ tiles.
  struct Panels {
    const std::byte *a, *b;
    int rows;
    bool go_on;  // the first slot holds what the sums start from
    float* slots;
  };

  int64_t panel_bytes(bool left) const;
  int64_t packed_bytes(bool left) const;
  // Packs panels [begin, end) of one side to `out`.
  void pack_panels(const Int8Operand& operand, bool left, int64_t begin, int64_t end, std::byte* out) const;
  int64_t c_begin(int64_t row) const;
  void pack(machine::ThreadPool& pool, const Int8Operand& operand, bool left, PackedInt8& out) const;
  // The memory of an operand that was packed before, else null.
  const std::byte* packed_of(const Int8Side& side, bool left) const;
  // Whether panels of B are packed by the tasks that read them, because so few rows do.
  bool packs_where_read(const Int8Side& b) const;
  void plan_tasks(const Task& whole, int64_t wanted, std::vector<Task>& tasks) const;
  void run_task(const Task& task) const;
  void run_tile(const Panels& at, size_t level, int64_t first, int64_t count, int slot) const;
  void store(const float* tile, const Task& task, int64_t row, int64_t rows, int64_t column) const;
  void load(float* tile, const void* c, int64_t row, int64_t rows, int64_t column) const;
  int64_t c_bytes() const;
  double work() const;
  static void run_calls(machine::ThreadPool& pool, std::span<const Int8DotCall> calls, bool go_on);

  Int8DotSpec spec_;
  const DotInt8Kernel* kernel_;
  std::vector<int32_t> steps_;         // k of each block, padded for the kernel
  std::vector<int64_t> packed_begin_;  // how many k are packed before each block, and in all
  int tree_slots_ = 1;                 // partials alive at once
};

}  // namespace ostro::kernels
