#include "ostro/kernels/attention/kernels/attention_panels.inc.h"
#include "ostro/kernels/attention/kernels/attention_panels_backward.inc.h"
#include "ostro/kernels/attention/kernels/attention_table.inc.h"
#include "ostro/machine/vector/vec_avx2.h"

namespace ostro::kernels {

const AttentionKernels& attention_avx2() {
  static const AttentionKernels table = [] {
    AttentionKernels t = attention_table<machine::VecAvx2>();
    use_panels<machine::VecAvx2, gemm_f32_avx2, gemm_bf16_avx2>(t);
    use_panels_backward<machine::VecAvx2, gemm_f32_avx2, gemm_bf16_avx2>(t);
    return t;
  }();
  return table;
}

}  // namespace ostro::kernels
