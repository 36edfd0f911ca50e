#include "ostro/kernels/attention/kernels/attention_table.inc.h"
#include "ostro/machine/vector/vec_generic.h"

namespace ostro::kernels {

const AttentionKernels& attention_generic() {
  static const AttentionKernels table = attention_table<machine::VecGeneric>();
  return table;
}

}  // namespace ostro::kernels
