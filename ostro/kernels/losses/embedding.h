// embedding_gather, embedding_scatter_add: rows of a table by index, and the gradient of that
// (docs/spec/numerics.md, N10).
#pragma once

#include <cstdint>

#include "ostro/machine/thread_pool.h"
#include "ostro/machine/vector/float_type.h"

namespace ostro::kernels {

struct EmbeddingGather {
  int64_t tokens = 0, vocab = 0, embed = 0;
  machine::FloatType type = machine::FloatType::kF32;
  const void* table = nullptr;  // [vocab, embed] in rows of table_stride elements
  int64_t table_stride = 0;
  const int32_t* indices = nullptr;  // [tokens]
  int64_t origin = 0;                // index of the table's first row (a shard's); 0 for a whole table
  void* out = nullptr;               // [tokens, embed] in rows of out_stride elements
  int64_t out_stride = 0;
};

// Copies rows bit for bit, -0 and NaN included; an index outside [origin, origin + vocab) gives +0.
void embedding_gather(const EmbeddingGather& args, machine::ThreadPool& pool);

struct EmbeddingScatterAdd {
  int64_t tokens = 0, vocab = 0, embed = 0;
  const float* update = nullptr;  // [tokens, embed] in rows of update_stride elements
  int64_t update_stride = 0;
  const int32_t* indices = nullptr;
  int64_t origin = 0;
  float* grad = nullptr;  // [vocab, embed] in rows of grad_stride elements; overwritten
  int64_t grad_stride = 0;
};

// grad[row] = +0 + the updates of all tokens with that index, tokens ascending, one chain of f32 additions
// per element. Indices outside the table are ignored. Each thread owns some columns, so the tokens need not
// be sorted.
void embedding_scatter_add(const EmbeddingScatterAdd& args, machine::ThreadPool& pool);

}  // namespace ostro::kernels
