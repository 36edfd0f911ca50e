// The table of attention kernels over a vector type V.
#pragma once

#include "ostro/cpu/kernels/attention_backward.inc.h"
#include "ostro/cpu/kernels/attention_forward.inc.h"

namespace ostro::cpu::kernels {

template <class V>
inline AttentionKernels attention_table() {
  AttentionKernels t;
  t.forward = [](const AttentionForward& a, int64_t item, float* scratch) {
    if (a.shape.type == FloatType::kBf16)
      attention_forward_item<V, true>(a, item, scratch);
    else
      attention_forward_item<V, false>(a, item, scratch);
  };
  t.delta = [](const AttentionBackward& a, int64_t begin, int64_t end, float* delta) {
    if (a.shape.type == FloatType::kBf16)
      attention_delta_rows<V, true>(a, begin, end, delta);
    else
      attention_delta_rows<V, false>(a, begin, end, delta);
  };
  t.backward = [](const AttentionBackward& a, const float* delta, const BackwardJob& job, float* scratch) {
    if (a.shape.type == FloatType::kBf16)
      attention_backward_job<V, true>(a, delta, job, scratch);
    else
      attention_backward_job<V, false>(a, delta, job, scratch);
  };
  return t;
}

}  // namespace ostro::cpu::kernels
