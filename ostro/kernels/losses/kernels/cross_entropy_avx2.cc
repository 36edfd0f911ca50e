#include "ostro/kernels/losses/kernels/cross_entropy.inc.h"
#include "ostro/machine/vector/vec_avx2.h"

namespace ostro::kernels {

const CrossEntropyKernels& cross_entropy_avx2() {
  static const CrossEntropyKernels table = cross_entropy_table<machine::VecAvx2>();
  return table;
}

}  // namespace ostro::kernels
