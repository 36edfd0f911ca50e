#include "ostro/kernels/losses/kernels/cross_entropy.inc.h"
#include "ostro/machine/vector/vec_avx512.h"

namespace ostro::kernels {

const CrossEntropyKernels& cross_entropy_avx512() {
  static const CrossEntropyKernels table = cross_entropy_table<machine::VecAvx512>();
  return table;
}

}  // namespace ostro::kernels
