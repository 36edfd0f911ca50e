// cross_entropy_forward, cross_entropy_backward, cross_entropy_both: cross-entropy over rows of f32 logits
// (docs/spec/numerics.md, N11).
//
// Each row is one independent chain of operations; bits do not depend on instruction set or threads. Leaves
// that do not end at vocab abort.
#pragma once

#include <cstdint>
#include <span>

#include "ostro/machine/isa.h"
#include "ostro/machine/thread_pool.h"
#include "ostro/machine/vector/float_type.h"

namespace ostro::kernels {

struct CrossEntropyForward {
  int64_t rows = 0, vocab = 0;
  const float* logits = nullptr;     // [rows, vocab], vocab contiguous
  int64_t row_stride = 0;            // elements
  const int32_t* targets = nullptr;  // [rows]; a target outside [0, vocab) reads a logit of +0
  float z = 0;                       // weight of lse * lse
  // End of each vocab leaf, ascending, the last one vocab; empty means one leaf.
  std::span<const int64_t> vocab_leaf_ends;
  float* loss = nullptr;  // [rows]
  float* m = nullptr;     // [rows] largest logit
  float* r = nullptr;     // [rows] 1 / sum of exponentials
  float* lse = nullptr;   // [rows]
};

struct CrossEntropyBackward {
  int64_t rows = 0, vocab = 0;
  const float* logits = nullptr;
  int64_t row_stride = 0;
  const int32_t* targets = nullptr;
  float z = 0;
  const float* m = nullptr;
  const float* r = nullptr;
  const float* lse = nullptr;
  const float* w = nullptr;  // [rows]: the weight of each row's loss
  void* dlogits = nullptr;   // [rows, vocab]; may be the logits themselves when it is f32
  machine::FloatType dlogits_type = machine::FloatType::kF32;
  int64_t dlogits_stride = 0;  // elements
};

// Writes loss, m, r and lse of every row.
void cross_entropy_forward(const CrossEntropyForward& args, machine::Isa isa, machine::ThreadPool& pool);
// The sums of exponentials alone, for given maxima: of args only the logits and the leaves are read.
// sums[row] = l of N11 with m[row], which must be at least every logit of the row.
void cross_entropy_sum(const CrossEntropyForward& args, const float* m, float* sums, machine::Isa isa,
                       machine::ThreadPool& pool);
// Writes dlogits of every row, from m, r and lse of the forward pass.
void cross_entropy_backward(const CrossEntropyBackward& args, machine::Isa isa, machine::ThreadPool& pool);
// Both passes: the gradient of each row right after its loss. So the logits are read from memory once and the
// exponentials are computed once. `backward` must have the logits, targets, m, r and lse of `forward`. Its
// gradient may overwrite the logits, also as bf16, if its rows begin where the rows of the logits begin.
void cross_entropy_both(const CrossEntropyForward& forward, const CrossEntropyBackward& backward,
                        machine::Isa isa, machine::ThreadPool& pool);

}  // namespace ostro::kernels
