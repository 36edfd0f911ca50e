// attention_packed_table: the table of bf16 attention kernels over a policy of attention_packed.inc.h.
#pragma once

#include "ostro/kernels/attention/kernels/attention_packed_backward.inc.h"
#include "ostro/kernels/attention/kernels/attention_packed_forward.inc.h"

namespace ostro::kernels {

template <class P>
inline AttentionKernels attention_packed_table() {
  AttentionKernels t;
  t.packed_bytes = packed_forward_bytes<P>;
  t.pack = packed_forward_pack<P>;
  t.forward = packed_forward_item<P>;
  t.delta = attention_delta_rows<machine::VecAvx512, true>;
  t.backward = packed_backward_job<P>;
  t.forward_scratch = packed_forward_scratch<P>;
  t.backward_scratch = packed_backward_scratch<P>;
  return t;
}

}  // namespace ostro::kernels
