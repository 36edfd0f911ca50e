#include "ostro/kernels/attention/kernels/attention_table.inc.h"
#include "ostro/machine/vector/vec_avx512.h"

namespace ostro::cpu::kernels {

const AttentionKernels& attention_avx512() {
  static const AttentionKernels table = attention_table<VecAvx512>();
  return table;
}

}  // namespace ostro::cpu::kernels
