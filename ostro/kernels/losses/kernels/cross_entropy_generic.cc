#include "ostro/kernels/losses/kernels/cross_entropy.inc.h"
#include "ostro/machine/vector/vec_generic.h"

namespace ostro::cpu::kernels {

const CrossEntropyKernels& cross_entropy_generic() {
  static const CrossEntropyKernels table = cross_entropy_table<VecGeneric>();
  return table;
}

}  // namespace ostro::cpu::kernels
