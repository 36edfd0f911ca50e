// SlicedAttention: attention on integers (docs/spec/numerics.md, N21) and its gradient on a device: by tiles
// on tensor cores where a block has the shared memory for it, else one block a row.
//
// Internal to cuda/attention. Rows are cut into slices first, in working memory of the step. Borrows what it
// is given. Errors: those of launches and of memory.
#pragma once

#include "ostro/cuda/attention/operands.h"

namespace ostro::cuda {

class SlicedAttention {
 public:
  // `args` with all but the slices; these are filled.
  SlicedAttention(const StepCall& call, Places& places, args::AttentionArgs& args);
  Status forward();
  // Needs args.delta.
  Status backward();

 private:
  int64_t heads() const { return a_.kv_heads * a_.group; }
  int64_t forward_bytes() const;  // of shared memory
  // `operands`: of a side, 2 where dp is needed.
  int64_t backward_bytes(int64_t operands) const;
  // Cuts the rows of an operand, with query heads or with those of keys, into the forms that are wanted.
  Status slice(const args::AttentionPlace& x, bool of_queries, int forms, args::SlicedPlace& to);
  Status launch(const char* text, const char* kernel, int64_t heads, int64_t rows, int64_t bytes);
  Status launch_rows(const char* kernel, int64_t heads, int64_t rows);

  const StepCall& call_;
  Places& places_;
  args::AttentionArgs& a_;
  const int64_t wide_;  // of head_dim in tiles
  bool tiled_ = false;
};

}  // namespace ostro::cuda
