#include "ostro/kernels/attention/kernels/attention_table.inc.h"
#include "ostro/machine/vector/vec_avx512.h"

namespace ostro::kernels {

const AttentionKernels& attention_avx512() {
  static const AttentionKernels table = attention_table<machine::VecAvx512>();
  return table;
}

}  // namespace ostro::kernels
