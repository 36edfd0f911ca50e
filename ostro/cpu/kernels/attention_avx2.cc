#include "ostro/cpu/kernels/attention_table.inc.h"
#include "ostro/cpu/kernels/vec_avx2.h"

namespace ostro::cpu::kernels {

const AttentionKernels& attention_avx2() {
  static const AttentionKernels table = attention_table<VecAvx2>();
  return table;
}

}  // namespace ostro::cpu::kernels
