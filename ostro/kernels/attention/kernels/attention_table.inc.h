// attention_table: the table of attention kernels over a vector type V.
#pragma once

#include "ostro/kernels/attention/kernels/attention_backward.inc.h"
#include "ostro/kernels/attention/kernels/attention_forward.inc.h"

namespace ostro::kernels {

template <class V>
inline AttentionKernels attention_table() {
  AttentionKernels t;
  t.packed_bytes = [](const AttentionForward&) { return int64_t{0}; };
  t.pack = nullptr;
  t.forward = [](const AttentionForward& a, const void*, int64_t item, float* scratch) {
    if (a.shape.type == machine::FloatType::kBf16)
      attention_forward_item<V, true>(a, item, scratch);
    else
      attention_forward_item<V, false>(a, item, scratch);
  };
  t.delta = [](const AttentionBackward& a, int64_t begin, int64_t end, float* delta) {
    if (a.shape.type == machine::FloatType::kBf16)
      attention_delta_rows<V, true>(a, begin, end, delta);
    else
      attention_delta_rows<V, false>(a, begin, end, delta);
  };
  t.backward = [](const AttentionBackward& a, const float* delta, const BackwardJob& job, float* scratch) {
    if (a.shape.type == machine::FloatType::kBf16)
      attention_backward_job<V, true>(a, delta, job, scratch);
    else
      attention_backward_job<V, false>(a, delta, job, scratch);
  };
  t.forward_scratch = [](const AttentionForward& a) {
    const int64_t wide = padded(a.shape.head_dim);
    const int64_t copies = a.shape.type == machine::FloatType::kBf16 ? 2 * kKeyBlock * wide : 0;
    return 2 * wide * kQueryTile + kKeyBlock * kQueryTile + V::kWidth * wide + copies;
  };
  t.backward_scratch = [](const AttentionBackward& a, const BackwardJob& job) {
    const int64_t wide = padded(a.shape.head_dim), rows = a.shape.group * (job.rows.end - job.rows.begin);
    return 3 * kKeyBlock * wide + 2 * rows * wide + 2 * kQueryTile * kKeyBlock +
           leaf_partials(a) * 2 * kKeyBlock * wide + (job.dq ? rows * wide : 0);
  };
  return t;
}

}  // namespace ostro::kernels
