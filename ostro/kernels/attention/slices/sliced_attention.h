// sliced_forward, sliced_backward_job: attention whose products are of integers (docs/spec/numerics.md, N21),
// over the kernels of N20's products. attention.h checks the arguments and computes what is not of products:
// delta, and the gradient of a sink. The bits do not depend on instruction set, threads or tiles.
#pragma once

#include "ostro/kernels/attention/attention.h"
#include "ostro/kernels/attention/kernels/attention_kernels.h"

namespace ostro::kernels {

// The words of one panel of queries, from those of a tile, and the scales of the keys that some query of it
// sees; of others +0, as what lies there need not be finite. Returns whether there is such a key.
bool panel_words(const uint64_t* words, int64_t panel, int64_t lanes, int64_t keys, const float* scales,
                 uint32_t* seen, float* factors);

// kappa of N9.
float score_kappa(const AttentionShape& shape);

// Writes out, m and r of every query row.
void sliced_forward(const AttentionForward& args, machine::Isa isa, machine::ThreadPool& pool);

// Writes what one job of the backward pass computes; jobs may run on several threads. delta [batch, pos,
// kv_heads, group].
void sliced_backward_job(const AttentionBackward& args, const float* delta, const BackwardJob& job,
                         machine::Isa isa);

}  // namespace ostro::kernels
