// GemmBlock: one thread's part of a matrix product, a block of rows by a range of column panels. Internal to
// ostro/kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ostro/products/few/scratch.h"
#include "ostro/products/gemm.h"
#include "ostro/products/tile/gemm_kernel.h"

namespace ostro::kernels {

inline int64_t element_bytes(GemmType type) { return type == GemmType::kF32 ? 4 : 2; }
inline int64_t b_element_bytes(const GemmSpec& spec) { return spec.int8_b ? 1 : element_bytes(spec.in); }

// f32 arithmetic of one block, from packing A to storing C.
class GemmBlock {
 public:
  // The panels of B that this thread is likely to pack after this block, of another product; they are
  // prefetched.
  struct Next {
    const Gemm* gemm = nullptr;
    GemmB b = nullptr;
    int64_t panel_begin = 0, panel_end = 0;
  };
  // Rows [row_panel_begin, row_panel_end) in panels of mr. A and B may each be packed already; otherwise the
  // block packs its part. packed_b is a matrix as Gemm::pack leaves it, `packed_panels` panels from
  // packed_begin on, of which [panel_begin, panel_end) are this block's; packed_a has just the rows of the
  // block.
  struct Place {
    GemmBatch offsets;
    int64_t row_panel_begin, row_panel_end;
    int64_t panel_begin, panel_end;
    const std::byte* packed_b = nullptr;
    int64_t packed_begin = 0, packed_panels = 0;
    const std::byte* packed_a = nullptr;
    bool go_on = false;   // from what C holds
    int64_t c_bytes = 0;  // of all C that is written together; 0: this product's alone
    const Next* next = nullptr;
  };

  // `b` is the B of the batch entry; it is ignored where packed_b is given.
  GemmBlock(const Gemm& gemm, const Place& place, const void* a, GemmB b, void* c);
  void run();

 private:
  // Panels of B that are used together: `panels` in parts of nearly equal size.
  static int64_t group_of(const Gemm& gemm, int64_t panels);
  // Begins to prefetch the panels of B that come after this span, in `steps` calls of ahead_b_.step().
  void look_ahead(const Gemm::Span& then, int64_t panel_begin, int64_t panel_end, bool last, int64_t steps);
  void segment(int64_t segment, float* tiles, int64_t panel_begin, int64_t panel_end, bool store);
  void span(int64_t index, float* tiles, int64_t panel_begin, int64_t panel_end, bool store);
  void tree(size_t level, int64_t first, int64_t count, int slot, int64_t panel_begin, int64_t panel_end);
  void load_tile(float* tile, int64_t row_panel, int64_t panel) const;
  void store_tile(const float* tile, int64_t row_panel, int64_t panel) const;
  void prefetch_c(int64_t row_panel, int64_t panel) const;
  // Elements from one row of C to the next within a row panel, if tiles may be made there, else 0.
  int64_t direct_stride(int64_t row_panel) const;
  int rows_of(int64_t row_panel) const;
  // Of place_.packed_b; a span's panels follow each other.
  const std::byte* packed_panel(const Gemm::Span& span, int64_t panel) const;

  // Prefetches the part of an operand that is packed next, one slice per tile.
  class Ahead {
   public:
    // Panels [begin, end) of the span, all in `steps` calls of step(). along_k: k is contiguous in memory.
    void begin(const Gemm::Operand& operand, const Gemm::Span& span, int64_t begin, int64_t end, bool along_k,
               int64_t steps);
    void step();  // nothing before begin()

   private:
    const std::byte* base_ = nullptr;
    // The offsets along memory, of which only one per cache line is prefetched, and the other offsets.
    const int64_t *line_ = nullptr, *line_end_ = nullptr, *at_ = nullptr;
    const int64_t *other_ = nullptr, *other_end_ = nullptr;
    int64_t element_ = 0, in_line_ = 0, per_step_ = 0;
  };

  const Gemm& gemm_;
  const GemmKernel& kernel_;
  Place place_;
  Gemm::Operand a_, b_;
  std::byte* c_;
  int64_t row_panels_;
  bool by_row_ = true;     // the tiles of one row panel are finished before the next begins
  bool whole_a_ = false;   // A is packed once for all groups of columns
  bool pack_now_ = true;   // this group of columns is the one that packs A
  int64_t pack_step_ = 1;  // panels of A packed together
  Ahead ahead_a_, ahead_b_;
  bool stream_;  // C is written past the caches
  std::byte* packed_a_ = nullptr;
  std::byte* packed_b_ = nullptr;  // room for a group of one span, unless B is packed
  std::byte* wide_b_ = nullptr;    // packed_b_ or place_.packed_b widened, for the kernels that widen B
  float* tiles_ = nullptr;         // slots of [panel][row_panel, unless by_row_][mr][nr]
  int64_t slot_floats_ = 0;
};

}  // namespace ostro::kernels
